"""A thing, or a heap of things, on a table, a turntable or a floor, before nothing, black, or a busy room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pdc_sfm.scenes.objects.shapes import FLAT, STANDING, Wardrobe, clutter
from pdc_sfm.scenes.render.mesh import Frame, Mesh
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import WorldSettings
from pdc_sfm.scenes.worlds.shots import APART, Focus, plan, shares
from pdc_sfm.scenes.worlds.skins import Textures
from pdc_sfm.scenes.worlds.solids import Solids
from pdc_sfm.scenes.worlds.world import World

TABLE = 1.2  # metres, the table's side


def build_objects(settings: WorldSettings, textures: Textures) -> list[tuple[World, Shot]]:
    """The pictures of a seed. A twin has the same kind of stage and of thing, but other pictures on them and other details."""
    random = np.random.default_rng([settings.seed, 11])
    design = int(random.integers(2**31))
    out = []
    for number, pictures in enumerate(shares(settings, random)):
        world, foci = _world(Frame.standing(APART * number, 0), design, number, textures)
        shots = plan(foci, settings, lambda eye: eye[2] > 0.04, len(world.visitors), pictures, random)
        out += [(world, shot) for shot in shots]
    return out


def _world(frame: Frame, design: int, number: int, textures: Textures) -> tuple[World, list[Focus]]:
    b, walls = Solids(), Solids()
    shared, own = np.random.default_rng(design), np.random.default_rng([design, number])
    foci = _stage(b, walls, frame, shared, own, number > 0, textures)
    solid = b.build()
    backdrop = np.zeros(3) if shared.random() < 0.4 else shared.uniform(0.05, 0.9) * np.exp(shared.normal(0, 0.25, 3))
    world = World(
        solid.joined(walls.build()),
        solid,
        textures,
        frame.to_world([[0.9, 0.6, 1.6], [-1.1, 0.2, 1.2]]),
        np.tile([1.6, 1.3, 1.0], (2, 1)) * shared.uniform(0.4, 1.4),
        frame.to_world([0.0, 0.0, 0.2]),
        1.0,
        tuple(backdrop),
        [_visitor(frame, own, textures) for _ in range(3)],
    )
    return world, foci


def _stage(
    b: Solids,
    walls: Solids,
    frame: Frame,
    design: np.random.Generator,
    detail: np.random.Generator,
    twin: bool,
    textures: Textures,
) -> list[Focus]:
    """One stage: what it is follows from `design`, what lies on it also from `detail`, as do all pictures of a twin: other things
    on the same tablecloth, in the same room, would be those of one stage at another time."""
    wear = Wardrobe(len(textures), detail)
    shared = Wardrobe(len(textures), design)
    top = shared.skin(0.9, plain=0.5)
    top = wear.skin(0.9, plain=0.5) if twin else top
    kind = design.choice(["table", "turntable", "desk"], p=[0.4, 0.3, 0.3])
    if kind == "turntable":
        b.post(frame.shifted(z=-0.03), (0.34, 0.34), (0, 0.03), replace(top, contrast=0.15), 40)
        side = 0.4
    else:
        b.block(frame, (-TABLE / 2, -TABLE / 2, -0.04), (TABLE / 2, TABLE / 2, 0), top)
        side = TABLE
    if kind != "turntable" and design.random() < 0.6:
        _busy(Solids() if twin else walls, frame, shared)
        if twin:
            _busy(walls, frame, wear)
    if kind == "desk":
        clutter(b, frame, (side, side), int(design.integers(6, 16)), 0.22, wear, flat=0.75)
        return [
            Focus(frame.to_world([*detail.uniform(-0.3, 0.3, 2), 0]), 0.0, np.pi, (0.9, 1.5), (0.45, 1.1))
            for _ in range(4)
        ]
    size = float(design.uniform(0.3, 0.5))
    for height, part in ((0.0, 1.0), (0.35 * size, 0.6))[
        : 1 + (design.random() < 0.4)
    ]:  # one thing, or one grown out of it
        spot = frame.shifted(z=height).turned(design.uniform(0, 6.3))
        STANDING[int(design.integers(len(STANDING)))](b, spot, part * size, wear)
    if kind == "table":
        for angle in np.arange(5) * 1.26:
            spot = frame.turned(angle + detail.normal(0, 0.2)).shifted(0.45)
            kinds = FLAT if detail.random() < 0.4 else STANDING
            kinds[int(detail.integers(len(kinds)))](b, spot.turned(detail.uniform(0, 6.3)), 0.17, wear)
    middle = frame.to_world([0, 0, 0.45 * size])
    angles = design.uniform(0, 2 * np.pi) + np.arange(4) * np.pi / 2  # all round: opposite sides show nothing in common
    return [Focus(middle, float(angle), 0.8, (0.08, 1.1), (0.6, 1.4)) for angle in angles]


def _busy(walls: Solids, frame: Frame, wear: Wardrobe) -> None:
    """Walls and floor with pictures, some way off."""
    far = float(wear.random.uniform(1.8, 3.5))
    for angle in np.arange(4) * np.pi / 2:
        wall = frame.turned(angle).shifted(y=-far)
        walls.picture(wall, (-far, far), (-0.8, 2.4), 0, wear.skin(1.5))
        for _ in range(int(wear.random.integers(1, 5))):
            x, z, width = (
                wear.random.uniform(-far, far - 0.8),
                wear.random.uniform(-0.4, 1.4),
                wear.random.uniform(0.3, 0.9),
            )
            walls.picture(wall, (x, x + width), (z, z + 0.7 * width), 0.02, wear.print(width))
    walls.level(frame, (-far, far), (-far, far), -0.8, wear.skin(1.2))


def _visitor(frame: Frame, random: np.random.Generator, textures: Textures) -> Mesh:
    """A thing that only one picture shows there."""
    b, wear = Solids(), Wardrobe(len(textures), random)
    spot = frame.shifted(*random.uniform(-0.35, 0.35, 2)).turned(random.uniform(0, 6.3))
    STANDING[int(random.integers(len(STANDING)))](b, spot, float(random.uniform(0.1, 0.2)), wear)
    return b.build()
