"""A room: floor, walls with windows, doors and pictures, furniture along them and in the middle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from pdc_sfm.scenes.indoor.furnishings import AT_WALLS, sofa, table
from pdc_sfm.scenes.objects.shapes import STANDING, Wardrobe, clutter
from pdc_sfm.scenes.render.mesh import Frame, Mesh
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import WorldSettings
from pdc_sfm.scenes.worlds.shots import APART, Focus, plan, shares
from pdc_sfm.scenes.worlds.skins import Skin, Textures
from pdc_sfm.scenes.worlds.solids import Solids
from pdc_sfm.scenes.worlds.world import World


@dataclass
class _Room:
    """A room being built. `wear` dresses what two rooms of one design share, `detail` what is in this one alone."""

    frame: Frame  # floor's corner
    size: tuple[float, float, float]
    wear: Wardrobe
    detail: Wardrobe
    furniture: Solids = field(default_factory=Solids)
    shell: Solids = field(default_factory=Solids)
    taken: list[tuple[Frame, np.ndarray, np.ndarray]] = field(default_factory=list)  # frame, low, high
    foci: list[Focus] = field(default_factory=list)

    def free(self, eye: np.ndarray) -> bool:
        """Whether a camera can be there."""
        at = (eye - self.frame.origin) @ self.frame.axes.T
        margin = np.array([0.2, 0.2, 0.25])
        if (at < margin).any() or (at > np.array(self.size) - margin).any():
            return False
        return not any(
            ((local := (eye - frame.origin) @ frame.axes.T) > low - 0.12).all() and (local < high + 0.12).all()
            for frame, low, high in self.taken
        )


def build_rooms(settings: WorldSettings, textures: Textures) -> list[tuple[World, Shot]]:
    """The pictures of a seed: a room, and at times a second one of the same design with other things in it."""
    random = np.random.default_rng([settings.seed, 21])
    design = int(random.integers(2**31))
    out = []
    for number, pictures in enumerate(shares(settings, random)):
        room = _furnished(Frame.standing(APART * number, 0), design, number, len(textures))
        world = _world(room, np.random.default_rng([design, number, 1]), textures)
        order = [room.foci[k] for k in random.permutation(len(room.foci))]
        shots = plan(order, settings, room.free, len(world.visitors), pictures, random)
        out += [(world, shot) for shot in shots]
    return out


def _furnished(frame: Frame, design: int, number: int, textures: int) -> _Room:
    shared, own = np.random.default_rng(design), np.random.default_rng([design, number])
    size = (float(shared.uniform(3.0, 6.5)), float(shared.uniform(2.8, 5.0)), float(shared.uniform(2.3, 3.0)))
    room = _Room(frame, size, Wardrobe(textures, shared), Wardrobe(textures, own))
    _shell(room)
    for k in range(4):
        _wall(room, k)
    _middle(room)
    return room


def _wall_frame(room: _Room, k: int) -> tuple[Frame, float]:
    """Wall number k: x along it, y into the room; and its length."""
    width, depth, _ = room.size
    x, y = ((0, 0), (width, 0), (width, depth), (0, depth))[k]
    return room.frame.shifted(x, y).turned(k * np.pi / 2), (width, depth)[k % 2]


def _shell(room: _Room) -> None:
    width, depth, height = room.size
    wear, floor = room.wear, room.wear.skin(1.2, plain=0.3)
    room.furniture.level(room.frame, (0, width), (0, depth), 0, replace(floor, gloss=0.5 * floor.gloss))
    ceiling = replace(wear.skin(2.0), contrast=0.03, tint=(0.9, 0.9, 0.88))
    _overhead(room, (0, width), (0, depth), height, ceiling)
    x, y = width / 2, depth / 2
    _overhead(room, (x - 0.2, x + 0.2), (y - 0.2, y + 0.2), height - 0.03, replace(ceiling, glow=3.0))  # its lamp
    if wear.random.random() < 0.5:
        a, c = wear.random.uniform(0.8, 1.6), wear.random.uniform(0.6, 1.1)
        rug = wear.print(2 * a)
        room.furniture.level(
            room.frame.shifted(x, y, 0.01).turned(wear.random.normal(0, 0.3)), (-a, a), (-c, c), 0, rug
        )
    for _ in range(4):
        at = room.frame.to_world([*(room.detail.random.uniform(0.2, 0.8, 2) * room.size[:2]), 0])
        room.foci.append(Focus(at, 0.0, np.pi, (0.85, 1.4), (1.2, 2.0)))  # the floor, from above


def _overhead(room: _Room, x: tuple[float, float], y: tuple[float, float], z: float, skin: Skin) -> None:
    """A level rectangle facing down."""
    corners = [(x[0], y[0], z), (x[0], y[1], z), (x[1], y[1], z), (x[1], y[0], z)]
    room.shell.quads(room.frame, [corners], 0, skin.tint, skin.params)


def _wall(room: _Room, k: int) -> None:
    frame, length = _wall_frame(room, k)
    height, random = room.size[2], room.wear.random
    paint = replace(room.wear.skin(1.5), contrast=random.choice([0.02, 0.08, 0.3, 0.7], p=[0.4, 0.3, 0.2, 0.1]))
    room.shell.picture(frame, (0, length), (0, height), 0, paint)
    b = room.furniture
    kind = random.random()
    if kind < 0.75:
        width = float(random.uniform(0.5, 0.95) * (length - 1.3))
        start = float(random.uniform(0.7, length - width - 0.6))
        piece = AT_WALLS[int(random.integers(len(AT_WALLS)))]
        depth = piece(b, frame.shifted(start), width, room.wear, room.detail)
        room.taken.append((frame.shifted(start), np.zeros(3), np.array([width, depth, 1.0 if piece is sofa else 2.2])))
        _look_at(room, frame.to_world([start + width / 2, depth / 2, random.uniform(0.6, 1.2)]), frame)
        _look_at(room, frame.to_world([start + width * random.uniform(0.2, 0.8), depth, 0.9]), frame, near=0.7)
    _openings(room, frame, length, height, low=1.35 if kind < 0.75 else 0.5)


def _openings(room: _Room, frame: Frame, length: float, height: float, low: float) -> None:
    """Pictures, a window or a door on what is left of a wall."""
    random, detail, b = room.wear.random, room.detail, room.shell
    frame_skin = Skin(0, 1.0, (0.8, 0.8, 0.78), 0.05, 0.2)
    if low < 1 and random.random() < 0.7:
        width, tall, sill = random.uniform(0.9, 1.8), random.uniform(0.9, 1.3), random.uniform(0.5, 0.9)
        x = float(random.uniform(0.3, max(length - width - 0.3, 0.31)))
        if random.random() < 0.4:
            width, tall, sill = 0.85, 2.0, 0.0
        b.block(frame, (x, 0, sill), (x + width, 0.03, sill + tall), frame_skin)
        inner = (x + 0.06, x + width - 0.06), (sill + 0.06, sill + tall - 0.06)
        view = replace(detail.print(width), glow=0.0 if sill == 0 else random.uniform(0.5, 1.8))
        b.picture(frame, *inner, 0.032, view)
        b.block(frame, (x + width / 2 - 0.02, 0.03, sill), (x + width / 2 + 0.02, 0.05, sill + tall), frame_skin)
        _look_at(room, frame.to_world([x + width / 2, 0, sill + tall / 2]), frame)
    for _ in range(int(detail.random.integers(0, 4))):
        width = float(detail.random.uniform(0.2, 0.7))
        x = float(detail.random.uniform(0.2, max(length - width - 0.2, 0.21)))
        z = float(detail.random.uniform(max(low, 1.2), max(height - width, 1.25)))
        b.block(frame, (x - 0.02, 0, z - 0.02), (x + width + 0.02, 0.034, z + 0.75 * width + 0.02), frame_skin)
        b.picture(frame, (x, x + width), (z, z + 0.75 * width), 0.036, detail.print(width))


def _middle(room: _Room) -> None:
    """A table with chairs, and things left on the floor."""
    width, depth, _ = room.size
    random = room.wear.random
    middle = room.frame.shifted(width / 2, depth / 2).turned(random.choice([0, np.pi / 2]) + random.normal(0, 0.1))
    if random.random() < 0.6:
        size = (float(random.uniform(0.9, 1.6)), float(random.uniform(0.6, 0.9)))
        table(room.furniture, middle, size, room.wear, room.detail)
        room.taken.append(
            (middle, np.array([-size[0] / 2, -size[1] / 2, 0]), np.array([size[0] / 2, size[1] / 2, 1.0]))
        )
        for _ in range(3):
            at = middle.to_world([*(np.array(size) * room.detail.random.uniform(-0.25, 0.25, 2)), 0.75])
            room.foci.append(Focus(at, 0.0, np.pi, (0.45, 1.4), (0.5, 1.3)))
    else:
        clutter(
            room.furniture,
            middle,
            (0.6 * width, 0.6 * depth),
            int(room.detail.random.integers(3, 9)),
            0.4,
            room.detail,
            0.3,
        )
        room.foci.append(Focus(middle.to_world([0, 0, 0.2]), 0.0, np.pi, (0.3, 1.3), (0.8, 2.2)))


def _look_at(room: _Room, at: np.ndarray, wall: Frame, near: float = 1.2) -> None:
    """Views of something at a wall, from the room."""
    ahead = float(np.arctan2(wall.axes[1, 1], wall.axes[1, 0]))
    room.foci.append(Focus(at, ahead, 0.9, (-0.15, 0.5), (near, 3.5)))


def _world(room: _Room, random: np.random.Generator, textures: Textures) -> World:
    solid = room.furniture.build()
    width, depth, height = room.size
    lamps = [[width / 2, depth / 2, height - 0.25], [*(random.uniform(0.2, 0.8, 2) * room.size[:2]), 1.6]]
    return World(
        solid.joined(room.shell.build()),
        solid,
        textures,
        room.frame.to_world(lamps),
        np.array([[1.0, 0.82, 0.6], [1.0, 0.75, 0.5]]) * random.uniform(1.5, 5.0, (2, 1)),
        room.frame.to_world([width / 2, depth / 2, 0.8]),
        0.55 * float(np.hypot(width, depth)),
        (0.4, 0.4, 0.4),
        [_visitor(room, random) for _ in range(3)],
    )


def _visitor(room: _Room, random: np.random.Generator) -> Mesh:
    """Something that only some pictures show there: a bag, a box, someone's back."""
    b, wear = Solids(), Wardrobe(room.wear.textures, random)
    spot = room.frame.shifted(*(random.uniform(0.25, 0.75, 2) * room.size[:2])).turned(random.uniform(0, 6.3))
    STANDING[int(random.integers(len(STANDING)))](b, spot, float(random.uniform(0.4, 1.3)), wear)
    return b.build()
