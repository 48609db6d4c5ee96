"""A court between four wings of one design: rows of equal windows, and little that tells one place from another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pdc_sfm.scenes.objects.shapes import STANDING, Wardrobe
from pdc_sfm.scenes.render.mesh import Frame, Mesh
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import WorldSettings
from pdc_sfm.scenes.worlds.shots import Focus, plan
from pdc_sfm.scenes.worlds.skins import Skin, Textures
from pdc_sfm.scenes.worlds.solids import Solids
from pdc_sfm.scenes.worlds.world import World

HEAD = (1.2, 3.5)  # metres above the ground from which pictures are taken


def build_court(settings: WorldSettings, textures: Textures) -> list[tuple[World, Shot]]:
    """The pictures of a seed. No twin is needed: every wing looks like the others."""
    random = np.random.default_rng([settings.seed, 31])
    width, depth, height = random.uniform((16, 13, 7), (38, 28, 13))
    wear, frame = Wardrobe(len(textures), random), Frame.standing(0, 0)
    b, foci = Solids(), []
    b.level(frame, (0, width), (0, depth), 0, wear.skin(3.0, plain=0.3))
    front = _Front(wear, height)
    for k, (x, y) in enumerate(((0, 0), (width, 0), (width, depth), (0, depth))):
        wing, length = frame.shifted(x, y).turned(k * np.pi / 2), (width, depth)[k % 2]
        front.build(b, wing, length)
        ahead = float(np.arctan2(wing.axes[1, 1], wing.axes[1, 0]))
        for place in random.uniform(0.15, 0.85, 2) * length:
            at = wing.to_world([place, 0, random.uniform(2, 0.5 * height)])
            foci.append(Focus(at, ahead, 0.8, (-0.3, 0.05), (6.0, 18.0)))
    for _ in range(int(random.integers(0, 5))):
        spot = frame.shifted(*(random.uniform(0.25, 0.75, 2) * (width, depth))).turned(random.uniform(0, 6.3))
        STANDING[int(random.integers(len(STANDING)))](b, spot, float(random.uniform(1, 2.5)), wear)
    mesh = b.build()
    world = World(
        mesh,
        mesh,
        textures,
        frame.to_world([[width / 2, depth / 2, 5.0], [2.0, 2.0, 4.0], [width - 2, depth - 2, 4.0]]),
        np.tile([16.0, 11.0, 6.0], (3, 1)) * random.uniform(1, 3),
        frame.to_world([width / 2, depth / 2, height / 3]),
        0.55 * float(np.hypot(width, depth)),
        tuple(random.uniform(0.5, 1.0) * np.array([0.7, 0.8, 1.0])),
        [_visitor(wear, width, depth) for _ in range(3)],
    )

    def free(eye: np.ndarray) -> bool:
        inside = 1.0 < eye[0] < width - 1 and 1.0 < eye[1] < depth - 1
        return bool(inside and HEAD[0] < eye[2] < HEAD[1])

    order = [foci[k] for k in random.permutation(len(foci))]
    shots = plan(order, settings, free, len(world.visitors), range(1, settings.images + 1), random)
    return [(world, shot) for shot in shots]


class _Front:
    """The design that all wings share: paint, windows and their spacing."""

    def __init__(self, wear: Wardrobe, height: float):
        random = wear.random
        self.wear, self.height = wear, height
        self.paint = replace(wear.skin(2.5), contrast=random.choice([0.03, 0.15, 0.6], p=[0.5, 0.3, 0.2]))
        self.floors = int(random.integers(2, 5))
        self.step, self.size = random.uniform(1.8, 3.6), random.uniform((0.8, 1.2), (1.2, 1.9))
        self.glass = replace(wear.print(self.size[0]), gloss=0.3, tint=tuple(random.uniform(0.2, 0.8, 3)))
        self.stone = Skin(self.paint.texture, 1.5, tuple(random.uniform(0.3, 0.9, 3)), 0.2)
        self.roof = wear.skin(1.5)

    def build(self, b: Solids, wing: Frame, length: float) -> None:
        """One wing: windows in rows, here and there something of its own between them."""
        random, (wide, tall) = self.wear.random, self.size
        b.picture(wing, (0, length), (0, self.height), 0, self.paint)
        b.block(wing, (0, 0, self.height), (length, 0.5, self.height + 0.3), self.roof)
        start = float(random.uniform(0.6, 1.4))
        for x in np.arange(start, length - wide - 0.4, self.step):
            for floor in range(self.floors):
                z = 0.9 + floor * (self.height - 1.0) / self.floors
                own = random.random() < 0.08  # a curtain, a broken pane
                self._window(b, wing, float(x), float(z), wide, tall, self.wear.print(wide) if own else self.glass)
        for _ in range(int(random.integers(0, 4))):
            x, side = random.uniform(0.5, length - 2), random.uniform(0.5, 1.5)
            z = random.uniform(0, self.height / 2)
            b.picture(wing, (x, x + side), (z, z + side), 0.14, self.wear.print(side))

    def _window(self, b: Solids, wing: Frame, x: float, z: float, wide: float, tall: float, glass: Skin) -> None:
        edge = 0.12
        b.block(wing, (x - edge, 0, z - edge), (x + wide + edge, 0.1, z), self.stone)
        b.block(wing, (x - edge, 0, z + tall), (x + wide + edge, 0.1, z + tall + edge), self.stone)
        for side in (x - edge, x + wide):
            b.block(wing, (side, 0, z), (side + edge, 0.1, z + tall), self.stone)
        b.picture(wing, (x, x + wide), (z, z + tall), 0.01, glass)
        bar = x + wide / 2
        b.block(wing, (bar - 0.03, 0, z), (bar + 0.03, 0.06, z + tall), self.stone)
        b.block(wing, (x, 0, z + 0.6 * tall - 0.03), (x + wide, 0.06, z + 0.6 * tall + 0.03), self.stone)


def _visitor(wear: Wardrobe, width: float, depth: float) -> Mesh:
    """Something large that stands there for one picture."""
    b, random = Solids(), wear.random
    x, y = random.uniform(0.3, 0.7, 2) * (width, depth)
    spot = Frame.standing(x, y, 0, random.uniform(0, 6.3))
    STANDING[int(random.integers(len(STANDING)))](b, spot, float(random.uniform(1, 2.5)), wear)
    return b.build()
