"""The town around the square: rows of houses, the town hall, streets, a church tower, the ground."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.lettering import TOWN_HALL, WORDS
from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder
from pdc_sfm.scenes.town.facade import Opening, WallSkin, pierced_wall, quoins, surround
from pdc_sfm.scenes.town.ground_plan import HALF, ISLAND, KERB, SIDEWALK, STREET
from pdc_sfm.scenes.town.houses import build_house
from pdc_sfm.scenes.town.roofs import ridge_along
from pdc_sfm.scenes.town.styles import random_house

_HALL = 11.0  # width of the town hall


def sides() -> list[tuple[Frame, float]]:
    """The four sides of the square (south, east, north, west): a frame at each row's start, and the row's length."""
    x, y = HALF
    return [
        (Frame.standing(-x, -y, 0, 0), 2 * x - STREET),
        (Frame.standing(x, -y, 0, np.pi / 2), 2 * y - STREET),
        (Frame.standing(x, y, 0, np.pi), 2 * x - STREET),
        (Frame.standing(-x, y, 0, -np.pi / 2), 2 * y - STREET),
    ]


def build_rows(b: MeshBuilder, random: np.random.Generator) -> None:
    for k, (start, length) in enumerate(sides()):
        widths = _split(length - (_HALL if k == 2 else 0), random)
        x, hall = 0.0, len(widths) // 2 if k == 2 else -1
        for i, width in enumerate(widths):
            if i == hall:
                town_hall(b, start.shifted(x, 0.35), random)
                x += _HALL
            setback = random.uniform(-0.25, 0.2)
            build_house(b, start.shifted(x, setback), random_house(random, width), random)
            x += width
        _street(b, start.shifted(length), random)
    church_tower(b, Frame.standing(7.0, 33.0, 0, 0.2))


def _split(length: float, random: np.random.Generator) -> list[float]:
    """House widths between 5.5 and 10 metres that fill a row."""
    count = max(1, round(length / random.uniform(6.8, 7.8)))
    shares = random.uniform(0.8, 1.2, count)
    return list(shares / shares.sum() * length)


def _street(b: MeshBuilder, corner: Frame, random: np.random.Generator) -> None:
    """A street that leaves the square behind the end of a row: houses on both sides and one that closes the view."""
    far, behind = 34.0, 10.5  # where the street ends; how deep the row's own houses reach
    left = corner.shifted(STREET, -far).turned(np.pi / 2)  # continues the next row's line
    right = corner.shifted(0, -behind).turned(-np.pi / 2)
    for start, length in ((left, far), (right, far - behind)):
        x = 0.0
        for width in _split(length, random):
            build_house(b, start.shifted(x), random_house(random, width), random)
            x += width
    build_house(b, corner.shifted(-3, -far), random_house(random, 11.0), random)


def town_hall(b: MeshBuilder, frame: Frame, random: np.random.Generator) -> None:
    """Three arches below, tall arched windows above, a balcony, a clock in the gable."""
    stone = WallSkin(Material.STONE, rgb("#b3a488"), (0.31,))
    wall = WallSkin(Material.ASHLAR, rgb("#a58e72"), (0.77, 0.62, 0.31))
    roof = WallSkin(Material.TILES, rgb("#4d4a4a"), (0.2,))
    eaves, pitch = 10.6, _HALL / 3
    holes = []
    for k in range(3):
        x = (k + 0.5) * pitch
        holes.append(Opening(x - 1.25, x + 1.25, 0, 3.9, Material.DOOR, 1.1, 1.25, rgb("#4a2f22"), 0.1 + 0.3 * k))
    for k in range(5):
        x = (k + 0.5) * _HALL / 5
        holes.append(
            Opening(x - 0.6, x + 0.6, 5.2, 8.3, Material.WINDOW, 0.32, 0.6, rgb("#3b3a38"), 0.15 + 0.17 * k, (3, 6))
        )
    for k in range(5):
        x = (k + 0.5) * _HALL / 5
        holes.append(
            Opening(x - 0.4, x + 0.4, 9.1, 9.9, Material.WINDOW, 0.2, 0, rgb("#3b3a38"), 0.55 + 0.07 * k, (2, 2))
        )
    pierced_wall(b, frame, (0, _HALL), (0, eaves), wall, holes, stone)
    for hole in holes:
        if hole.kind == Material.WINDOW:
            surround(b, frame, hole, stone, "keystone" if hole.arch else "plain")
    for out, low, high in (
        (0.14, 4.35, 4.55),
        (0.3, 4.55, 4.7),
        (0.1, 8.75, 8.9),
        (0.25, 10.1, 10.3),
        (0.4, 10.3, 10.6),
    ):
        b.box(frame, (0, 0, low), (_HALL, out, high), stone.material, stone.tint, stone.params, faces="+x-x+y+z-z")
    for x in np.arange(0.15, _HALL - 0.2, 0.42):
        b.box(frame, (x, 0.1, 9.96), (x + 0.2, 0.24, 10.1), stone.material, stone.tint, stone.params, faces="+x-x+y-z")
    quoins(b, frame, 0, 1, 10.0, stone)
    quoins(b, frame, _HALL, -1, 10.0, stone)
    _balcony(b, frame, stone)
    _clock_gable(b, frame, eaves, wall, stone)
    b.box(frame, (0, -9, 0), (_HALL, 0, eaves), wall.material, wall.tint * 0.9, wall.params, faces="+x-x-y")
    ridge_along(b, frame, _HALL, 9, eaves, 4.2, roof, wall)
    word = WORDS.index(TOWN_HALL)
    b.panel(
        frame,
        (_HALL / 2 - 1.9, _HALL / 2 + 1.9),
        (4.0, 4.36),
        0.02,
        Material.SIGN,
        rgb("#b3a488"),
        (3.8, 0.36, word, 0.2),
        own_uv=True,
    )


def _balcony(b: MeshBuilder, frame: Frame, stone: WallSkin) -> None:
    args = (stone.material, stone.tint, stone.params)
    x0, x1 = _HALL / 2 - 1.9, _HALL / 2 + 1.9
    b.box(frame, (x0, 0, 4.7), (x1, 1.1, 4.85), *args)
    b.box(frame, (x0, 0.98, 5.6), (x1, 1.12, 5.72), *args)
    for x in np.linspace(x0 + 0.1, x1 - 0.1, 15):
        post = frame.shifted(float(x), 1.05)
        b.cylinder(post, (0.05, 0.07), (4.85, 5.2), *args, sides=6)
        b.cylinder(post, (0.07, 0.05), (5.2, 5.6), *args, sides=6)
    for x in (x0 + 0.4, x1 - 0.4):
        b.prism(
            frame.shifted(x - 0.12).turned(np.pi / 2), np.array([(0, 3.9), (1.0, 4.7), (0, 4.7)]), (-0.24, 0), *args
        )


def _clock_gable(b: MeshBuilder, frame: Frame, eaves: float, wall: WallSkin, stone: WallSkin) -> None:
    middle, half = _HALL / 2, 2.0
    b.box(
        frame,
        (middle - half, -2.5, eaves),
        (middle + half, 0, eaves + 2.2),
        wall.material,
        wall.tint,
        wall.params,
        faces="+x-x+y",
    )
    outline = np.array([(middle - half - 0.2, eaves + 2.2), (middle + half + 0.2, eaves + 2.2), (middle, eaves + 3.6)])
    b.prism(frame, outline, (-2.5, 0.12), stone.material, stone.tint, stone.params)
    a = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    dial = np.stack([middle + 0.85 * np.cos(a), np.full(24, 0.05), eaves + 1.15 + 0.85 * np.sin(a)], 1)
    b.fan(frame, dial[::-1], Material.CLOCK, rgb("#e2ddcf"), (0.85, 10.2), uv_origin=(middle, 0.05, eaves + 1.15))


def church_tower(b: MeshBuilder, frame: Frame) -> None:
    wall = (Material.ASHLAR, rgb("#8d8272"), (0.5, 0.7, 0.35))
    b.box(frame, (-3, -3, 0), (3, 3, 24), *wall)
    for k in range(4):
        face = frame.turned(k * np.pi / 2).shifted(y=3)
        for x in (-1.1, 1.1):
            b.panel(
                face,
                (x - 0.5, x + 0.5),
                (18.5, 21.5),
                0.01,
                Material.SHUTTER,
                rgb("#3d3832"),
                (1.0, 3.0, 0.3),
                own_uv=True,
            )
        a = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        dial = np.stack([1.1 * np.cos(a), np.full(24, 0.05), 16.4 + 1.1 * np.sin(a)], 1)
        b.fan(face, dial[::-1], Material.CLOCK, rgb("#d9d3c2"), (1.1, 10.3), uv_origin=(0, 0.05, 16.4))
        for low, out in ((17.8, 0.2), (23.6, 0.35)):
            b.box(
                face, (-3.2, 0, low), (3.2, out, low + 0.4), Material.STONE, rgb("#8d8272"), (0.2,), faces="+x-x+y+z-z"
            )
        spire = [(3.3, 0.3, 24), (-3.3, 0.3, 24), (0, -3, 36), (0, -3, 36)]
        b.quads(face, [spire], Material.TILES, rgb("#4c5a58"), (0.1,))


def build_ground(b: MeshBuilder) -> None:
    """Lane, raised middle, pavements with kerbs, streets, and land to the horizon."""
    world = Frame.standing(0, 0)
    (x, y), (ix, iy), w = HALF, ISLAND, SIDEWALK

    def level(
        x0: float, x1: float, y0: float, y1: float, z: float, material: Material, tint: str, params: tuple
    ) -> None:
        b.quads(world, [[(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)]], material, rgb(tint), params)

    setts, slabs = (Material.SETTS, "#77716a", (0.2,)), (Material.SLABS, "#948c80", (0.3, 0.75, 0.5))
    for x0, x1, y0, y1 in ((-x, x, -y, -iy), (-x, x, iy, y), (-x, -ix, -iy, iy), (ix, x, -iy, iy)):
        level(x0, x1, y0, y1, 0, *setts)
    level(-ix, ix, -iy, iy, KERB, Material.SLABS, "#8c857b", (0.6, 0.9, 0.6))
    b.box(world, (-ix, -iy, 0), (ix, iy, KERB), Material.STONE, rgb("#8f8a80"), (0.4,), faces="+x-x+y-y")
    for start, length in sides():
        b.box(start, (0, -1.0, 0), (length, w, KERB), Material.STONE, rgb("#8f8a80"), (0.4,), faces="+x-x+y")
        b.quads(
            start,
            [[(0, -1, KERB), (length, -1, KERB), (length, w, KERB), (0, w, KERB)]],
            slabs[0],
            rgb(slabs[1]),
            slabs[2],
        )
    far = 160.0
    for x0, x1, y0, y1 in ((-far, far, -far, -y), (-far, far, y, far), (-far, -x, -y, y), (x, far, -y, y)):
        level(x0, x1, y0, y1, 0, Material.ROAD, "#6a665f", (0.1,))
