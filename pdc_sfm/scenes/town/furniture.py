"""What stands on the square: the fountain, lamps, benches, bollards, stalls, a column for bills, tables and umbrellas."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder
from pdc_sfm.scenes.town.figures import figure
from pdc_sfm.scenes.town.shops import CLOTHS

_STONE = rgb("#a59a86")
_BRONZE = rgb("#47564a")
_IRON = rgb("#2d3331")
_WOOD = rgb("#7d5f42")


def _ring(radius: float, sides: int, z: float) -> np.ndarray:
    a = (np.arange(sides) + 0.5) * 2 * np.pi / sides
    return np.stack([radius * np.cos(a), radius * np.sin(a), np.full(sides, z)], 1)


def basin(b: MeshBuilder, frame: Frame, radius: float, height: float, wall: float, sides: int, seed: float) -> None:
    """A many-sided trough with a rim, filled with water."""
    out, inn = _ring(radius, sides, 0), _ring(radius - wall, sides, 0)
    lip_out, lip_in = _ring(radius + 0.08, sides, 0), _ring(radius - wall - 0.05, sides, 0)

    def belt(a: np.ndarray, c: np.ndarray, za: float, zc: float) -> np.ndarray:
        a, c = a + np.array([0, 0, za]), c + np.array([0, 0, zc])
        return np.stack([a, np.roll(a, -1, 0), np.roll(c, -1, 0), c], 1)

    faces = [
        belt(out, out, 0, height - 0.14),
        belt(out, lip_out, height - 0.14, height - 0.12),
        belt(lip_out, lip_out, height - 0.12, height),
        belt(lip_out, lip_in, height, height),
        belt(lip_in, inn, height, height - 0.15),
        belt(inn, inn, height - 0.15, 0),
    ]
    for k, face in enumerate(faces):
        b.quads(frame, face, Material.STONE, _STONE * (1.0 if k else 0.92), (seed,))
    b.fan(frame, _ring(radius - wall, sides, height - 0.22), Material.WATER, rgb("#39473f"), (seed,))


def fountain(b: MeshBuilder, frame: Frame, random: np.random.Generator) -> None:
    """Two steps, an eight-sided basin, a pillar with a bowl, and a figure on top."""
    for k, radius in enumerate((3.4, 3.0)):
        step = frame.shifted(z=0.14 * k)
        ring, top = _ring(radius, 16, 0), _ring(radius, 16, 0.14)
        b.quads(
            step,
            np.stack([ring, np.roll(ring, -1, 0), np.roll(top, -1, 0), top], 1),
            Material.STONE,
            _STONE * 0.85,
            (0.2 + k,),
        )
        b.fan(step, top, Material.SLABS, _STONE * 0.8, (0.3, 0.7, 0.5))
    base = frame.shifted(z=0.28)
    basin(b, base, 2.3, 0.75, 0.24, 8, 0.4)
    b.cylinder(base, (0.55, 0.5), (0, 0.5), Material.STONE, _STONE, (0.5,), 8)
    b.cylinder(base, (0.42, 0.34), (0.5, 1.5), Material.ASHLAR, _STONE, (0.6, 0.4, 0.25), 8)
    b.cylinder(base, (0.34, 0.95), (1.5, 1.75), Material.STONE, _STONE * 0.95, (0.7,), 16)
    b.cylinder(base, (0.95, 0.97), (1.75, 1.86), Material.STONE, _STONE, (0.7,), 16)
    b.fan(base, _ring(0.95, 16, 1.84), Material.WATER, rgb("#39473f"), (0.1,))
    b.cylinder(base, (0.28, 0.22), (1.8, 2.75), Material.STONE, _STONE, (0.8,), 8)
    b.box(base, (-0.36, -0.36, 2.75), (0.36, 0.36, 2.95), Material.STONE, _STONE, (0.9,))
    figure(
        b,
        base.shifted(z=2.95).turned(float(random.uniform(0, 6))),
        1.25,
        (_BRONZE, _BRONZE, _BRONZE, _BRONZE),
        Material.METAL,
        0.5,
        raised=True,
    )
    for k in range(4):  # spouts
        arm = base.turned(k * np.pi / 2 + 0.4)
        b.box(arm, (0.3, -0.03, 1.2), (0.62, 0.03, 1.26), Material.METAL, _BRONZE)
        b.ellipsoid(arm, (0.36, 0, 1.22), (0.1, 0.12, 0.13), Material.METAL, _BRONZE, (0.2,), 8, 6)


def lamp_post(b: MeshBuilder, frame: Frame) -> np.ndarray:
    """A cast-iron post with a lantern; returns where its light is, (3,) world."""
    b.cylinder(frame, (0.17, 0.14), (0, 0.35), Material.METAL, _IRON, (0.1,), 8)
    b.cylinder(frame, (0.11, 0.09), (0.35, 0.9), Material.METAL, _IRON, (0.2,), 8)
    b.cylinder(frame, (0.055, 0.04), (0.9, 3.5), Material.METAL, _IRON, (0.3,), 8)
    b.cylinder(frame, (0.09, 0.09), (0.9, 0.98), Material.METAL, _IRON, (0.3,), 8, caps="+")
    b.box(frame, (-0.35, -0.02, 3.15), (0.35, 0.02, 3.19), Material.METAL, _IRON)
    low, high = 0.12, 0.22
    corners = lambda r, z: np.array([(-r, -r, z), (r, -r, z), (r, r, z), (-r, r, z)])  # noqa: E731
    foot, head = corners(low, 3.52), corners(high, 3.98)
    b.quads(frame, np.stack([foot, np.roll(foot, -1, 0), np.roll(head, -1, 0), head], 1), Material.LANTERN)
    for k in range(4):  # iron bars along the edges of the glass
        out = np.sign(foot[k]) * [0.008, 0.008, 0]
        for side in (np.array([0.028, 0, 0]), np.array([0, 0.028, 0])):
            inward = -np.sign(foot[k]) * side
            bar = np.array([foot[k], foot[k] + inward, head[k] + inward, head[k]]) + out
            b.quads(frame, [bar], Material.METAL, _IRON, two_sided=True)
    b.box(frame, (-0.14, -0.14, 3.49), (0.14, 0.14, 3.53), Material.METAL, _IRON)
    roof, tip = corners(0.27, 3.98), np.array([[0, 0, 4.2]] * 4)
    b.quads(frame, np.stack([roof, np.roll(roof, -1, 0), tip, tip], 1), Material.METAL, _IRON, two_sided=True)
    b.ellipsoid(frame, (0, 0, 4.22), (0.05, 0.05, 0.07), Material.METAL, _IRON, (0.1,), 6, 4)
    return frame.to_world((0, 0, 3.75))


def bench(b: MeshBuilder, frame: Frame, seed: float) -> None:
    for k in range(4):
        b.box(frame, (-0.9, 0.12 * k, 0.43), (0.9, 0.12 * k + 0.09, 0.47), Material.PLANKS, _WOOD, (seed + k, 0.2))
    for k in range(3):
        b.box(
            frame,
            (-0.9, -0.06 - 0.02 * k, 0.55 + 0.13 * k),
            (0.9, -0.03 - 0.02 * k, 0.64 + 0.13 * k),
            Material.PLANKS,
            _WOOD,
            (seed - k, 0.2),
        )
    for x in (-0.7, 0.7):
        b.box(frame, (x - 0.03, -0.1, 0), (x + 0.03, -0.04, 0.9), Material.METAL, _IRON)
        b.box(frame, (x - 0.03, 0.36, 0), (x + 0.03, 0.42, 0.43), Material.METAL, _IRON)
        b.box(frame, (x - 0.03, -0.06, 0.39), (x + 0.03, 0.42, 0.43), Material.METAL, _IRON)


def bollard(b: MeshBuilder, frame: Frame) -> None:
    b.cylinder(frame, (0.09, 0.075), (0, 0.78), Material.METAL, _IRON, (0.4,), 10)
    b.ellipsoid(frame, (0, 0, 0.82), (0.09, 0.09, 0.08), Material.METAL, _IRON, (0.4,), 10, 5)


def bill_column(b: MeshBuilder, frame: Frame, random: np.random.Generator) -> None:
    """A round column covered with bills."""
    radius, sides = 0.68, 20
    b.cylinder(frame, (0.78, 0.76), (0, 0.35), Material.STONE, _STONE * 0.8, (0.2,), sides, caps="+")
    b.cylinder(frame, (radius, radius), (0.35, 3.0), Material.PLASTER, rgb("#a7a394"), (0.7,), sides)
    b.cylinder(frame, (0.85, 0.8), (3.0, 3.15), Material.METAL, _BRONZE, (0.2,), sides, caps="-+")
    b.ellipsoid(frame, (0, 0, 3.12), (0.72, 0.72, 0.45), Material.METAL, _BRONZE, (0.3,), sides, 6)
    facet = 2 * np.pi / sides
    for row, (z, tall) in enumerate(((0.5, 1.05), (1.65, 1.2))):
        for k in range(0, sides, 1 + row):
            if random.random() < 0.25:
                continue
            wide, seed = 2 * (radius + 0.012) * np.sin(facet / 2), float(random.random())
            count = 1 + row if random.random() < 0.8 else 1
            for j in range(count):  # a bill bends around the column facet by facet
                a = (k + j + 0.5) * facet
                face = frame.turned(a - np.pi / 2).shifted(y=(radius + 0.012) * np.cos(facet / 2))
                b.quads(
                    face,
                    [[(wide / 2, 0, z), (-wide / 2, 0, z), (-wide / 2, 0, z + tall), (wide / 2, 0, z + tall)]],
                    Material.POSTER,
                    (1, 1, 1),
                    (wide * count, tall, seed),
                    uv_origin=(wide / 2 + wide * j, 0, z),
                )


def stall(b: MeshBuilder, frame: Frame, word: int, random: np.random.Generator) -> None:
    """A market stall, its counter towards local +y."""
    first, second = CLOTHS[random.integers(len(CLOTHS))]
    cloth = (Material.FABRIC, rgb(first), (float(random.random()), 0.3, *rgb(second)))
    for x in (-1.4, 1.4):
        for y, z in ((-0.9, 2.3), (0.9, 2.1)):
            b.box(frame, (x - 0.03, y - 0.03, 0), (x + 0.03, y + 0.03, z), Material.PLANKS, _WOOD, (0.3, 0.1))
    roof = [(1.6, 0, 2.85), (-1.6, 0, 2.85), (-1.6, 1.25, 2.15), (1.6, 1.25, 2.15)]
    rear = [(1.6, -1.25, 2.15), (-1.6, -1.25, 2.15), (-1.6, 0, 2.85), (1.6, 0, 2.85)]
    edge = [(1.6, 1.25, 1.93), (-1.6, 1.25, 1.93), (-1.6, 1.25, 2.15), (1.6, 1.25, 2.15)]
    back = [(1.6, -1.25, 1.93), (-1.6, -1.25, 1.93), (-1.6, -1.25, 2.15), (1.6, -1.25, 2.15)]
    b.quads(frame, [roof, rear, edge, back], *cloth, two_sided=True)
    b.box(frame, (-1.45, -0.1, 0.75), (1.45, 0.95, 0.82), Material.PLANKS, _WOOD, (0.5, 0.12))
    b.box(frame, (-1.45, 0.9, 0.1), (1.45, 0.94, 0.75), Material.PLANKS, _WOOD * 0.8, (0.6, 0.15))
    b.panel(frame, (-0.9, 0.9), (0.22, 0.62), 0.945, Material.SIGN, rgb("#e0d6bc"), (1.8, 0.4, word, 0.3), own_uv=True)
    fruits = ("#b8402a", "#c98a1e", "#7d9a34", "#8a2d3c", "#d0b23a", "#5d7a30", "#b06a3a")
    for k in range(5):
        for row in range(2):
            x, y = -1.35 + 0.55 * k, 0.02 + 0.45 * row
            z = 0.86 + 0.10 * (1 - row)
            b.box(
                frame,
                (x, y, 0.82),
                (x + 0.48, y + 0.4, z + 0.06),
                Material.PLANKS,
                _WOOD * 1.2,
                (0.1 * k, 0.07),
                faces="+x-x+y-y",
            )
            heap = [
                (x + 0.02, y + 0.02, z),
                (x + 0.46, y + 0.02, z),
                (x + 0.46, y + 0.38, z - 0.03),
                (x + 0.02, y + 0.38, z - 0.03),
            ]
            b.quads(
                frame, [heap], Material.PRODUCE, rgb(fruits[random.integers(len(fruits))]), (float(random.random()),)
            )
    for _ in range(4):
        x, y = random.uniform(-1.9, 1.6), random.uniform(-1.3, -0.4)
        b.box(
            frame,
            (x, y, 0),
            (x + 0.5, y + 0.35, random.uniform(0.25, 0.7)),
            Material.PLANKS,
            _WOOD * 1.1,
            (float(random.random()), 0.09),
        )


def cafe(b: MeshBuilder, frame: Frame, random: np.random.Generator) -> None:
    """An umbrella, a round table and chairs."""
    first, second = CLOTHS[random.integers(len(CLOTHS))]
    b.cylinder(frame, (0.03, 0.03), (0, 2.5), Material.METAL, rgb("#c9c5bb"), (0.1,), 6)
    b.cylinder(frame, (0.3, 0.3), (0, 0.08), Material.STONE, _STONE, (0.1,), 10, caps="+")
    rim, tip = _ring(1.45, 8, 2.15), np.array([[0, 0, 2.75]] * 8)
    low = rim - [0, 0, 0.16]
    roof = np.stack([rim, np.roll(rim, -1, 0), tip, tip], 1)
    b.quads(frame, roof, Material.FABRIC, rgb(first), (float(random.random()), 0.0, *rgb(second)), two_sided=True)
    b.quads(
        frame,
        np.stack([low, np.roll(low, -1, 0), np.roll(rim, -1, 0), rim], 1),
        Material.FABRIC,
        rgb(second),
        two_sided=True,
    )
    for angle in random.uniform(0, 6.28, 2):
        place = frame.turned(float(angle)).shifted(0.75)
        b.cylinder(place, (0.36, 0.36), (0.70, 0.73), Material.METAL, rgb("#b5b0a4"), (0.2,), 14, caps="+-")
        b.cylinder(place, (0.03, 0.03), (0, 0.7), Material.METAL, _IRON, (0.2,), 6)
        for turn in (0.7, 2.6, 4.4):
            chair(b, place.turned(turn + float(random.uniform(-0.3, 0.3))).shifted(0.62))


def chair(b: MeshBuilder, frame: Frame) -> None:
    """A folding chair facing local -x."""
    b.box(frame, (-0.2, -0.2, 0.44), (0.2, 0.2, 0.47), Material.PLANKS, _WOOD, (0.4, 0.07))
    b.box(frame, (0.18, -0.2, 0.62), (0.21, 0.2, 0.85), Material.PLANKS, _WOOD, (0.4, 0.07))
    for x, z in ((-0.18, 0.44), (0.18, 0.85)):
        for y in (-0.18, 0.18):
            b.box(frame, (x - 0.012, y - 0.012, 0), (x + 0.012, y + 0.012, z), Material.METAL, _IRON)
