"""What moves: people and cars, different in every picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, Mesh, MeshBuilder
from pdc_sfm.scenes.town.figures import figure
from pdc_sfm.scenes.town.ground_plan import HALF, LANE, ground_height

_COATS = ("#2c3440", "#6a3a3a", "#3f4a35", "#8a8478", "#1f2023", "#b0a58f", "#3a4f6a", "#8f6f4a", "#c7c4bb", "#54465a")
_LEGS = ("#2a3040", "#1d1d1f", "#4a4238", "#3a4a63", "#6d675c")
_SKIN = ("#c99a7c", "#8d5f45", "#e0b497", "#5e3f2f")
_HAIR = ("#2a1d14", "#5a3d22", "#8f6a3a", "#191716", "#8c8880")
_CARS = ("#8f1f22", "#20324f", "#c9ccce", "#2b2d30", "#4d5a4a", "#b8b09a", "#e6e6e4")


def person(b: MeshBuilder, frame: Frame, random: np.random.Generator) -> None:
    def one(options: Sequence[str]) -> np.ndarray:
        return rgb(options[int(random.integers(len(options)))])

    figure(
        b,
        frame,
        random.uniform(0.9, 1.06),
        (one(_COATS), one(_LEGS), one(_SKIN), one(_HAIR)),
        Material.CLOTH,
        float(random.random()),
        random.uniform(-0.26, 0.26),
        coat_length=max(0.0, random.uniform(-0.4, 0.5)),
        bag=random.random() < 0.3,
    )


def car(b: MeshBuilder, frame: Frame, random: np.random.Generator) -> None:
    """A small car facing local +x, 4 m long."""
    tint = rgb(_CARS[random.integers(len(_CARS))])
    body = (Material.PAINT, tint, (float(random.random()), 0.06))
    glass = (Material.PAINT, rgb("#16191b"), (0.2, 0.12))
    half = 0.84
    lower = np.array([(-1.95, 0.3), (1.9, 0.28), (2.0, 0.55), (1.85, 0.78), (0.95, 0.92), (-1.9, 0.98), (-2.02, 0.6)])
    b.prism(frame, lower, (-half, half), *body)
    base = np.array([(-1.85, -half * 0.97), (1.05, -half * 0.97), (1.05, half * 0.97), (-1.85, half * 0.97)])
    top = np.array([(-1.45, -half * 0.76), (0.25, -half * 0.76), (0.25, half * 0.76), (-1.45, half * 0.76)])
    low = np.concatenate([base, np.full((4, 1), 0.93)], 1)
    high = np.concatenate([top, np.full((4, 1), 1.44)], 1)
    sides = np.stack([low, np.roll(low, -1, 0), np.roll(high, -1, 0), high], 1)
    b.quads(frame, sides, *glass)
    b.quads(frame, [high], *body)
    for k in range(4):  # roof pillars
        _strut(b, frame, low[k], high[k], body)
    for y in (-1, 1):
        middle = np.array([(-0.5, y * half * 0.97, 0.93), (-0.5, y * half * 0.76, 1.44)])
        _strut(b, frame, middle[0], middle[1], body)
        b.box(
            frame,
            (0.7, y * half - 0.02, 0.93),
            (0.85, y * half + 0.14 * y, 1.06) if y > 0 else (0.85, y * half + 0.02, 1.06),
            *body,
        )
    for x in (-1.25, 1.25):
        for side in (-half + 0.08, half - 0.08):
            wheel = frame.shifted(x, side, 0.31)
            axle = Frame(wheel.origin, wheel.axes[[2, 0, 1]])
            b.cylinder(axle, (0.31, 0.31), (-0.1, 0.1), Material.PAINT, rgb("#161616"), (0.1, 0.0), 16, caps="+-")
            b.cylinder(axle, (0.19, 0.17), (-0.112, 0.112), Material.METAL, rgb("#9a9c9e"), (0.1,), 12, caps="+-")
    for side in (-0.6, 0.6):
        b.box(frame, (1.88, side - 0.16, 0.58), (1.97, side + 0.16, 0.72), Material.LANTERN)
        b.box(
            frame, (-2.04, side - 0.14, 0.66), (-1.93, side + 0.14, 0.82), Material.PAINT, rgb("#7d1414"), (0.1, 0.08)
        )
    for x in (-2.04, 1.98):
        b.box(frame, (x - 0.03, -0.26, 0.4), (x + 0.03, 0.26, 0.51), Material.PAINT, rgb("#d8d8d0"), (0.1, 0.02))


def _strut(b: MeshBuilder, frame: Frame, low: np.ndarray, high: np.ndarray, skin: tuple) -> None:
    along = np.array([0.05, 0, 0])
    out = np.array([0, 0.012 * np.sign(low[1]), 0])
    corners = np.array([low - along, low + along, high + along, high - along]) + out
    b.quads(frame, [corners if low[1] < 0 else corners[::-1]], *skin)


def visitors(random: np.random.Generator, people: int, cars: int, eye: np.ndarray, taken: np.ndarray) -> Mesh:
    """People anywhere on the square that is free, cars on the lane, none right before the camera.

    taken: (m, 3) x, y, radius of what stands on the square.
    """
    b = MeshBuilder()
    placed = 0
    for _ in range(60 * max(people, 1)):
        if placed == people:
            break
        spot = random.uniform([1 - HALF[0], 1 - HALF[1]], [HALF[0] - 1, HALF[1] - 1])
        clear = np.linalg.norm(taken[:, :2] - spot, axis=1) > taken[:, 2] + 0.5
        if clear.all() and np.linalg.norm(spot - eye[:2]) > 4.0:
            person(b, Frame.standing(spot[0], spot[1], ground_height(spot), random.uniform(0, 6.28)), random)
            placed += 1
    parked: list[np.ndarray] = []
    for _ in range(cars):
        k = int(random.integers(len(LANE)))
        start, end = LANE[k], LANE[(k + 1) % len(LANE)]
        spot = start + (end - start) * random.uniform(0.15, 0.85)
        if np.linalg.norm(spot - eye[:2]) > 6 and all(np.linalg.norm(spot - other) > 5.5 for other in parked):
            parked.append(spot)
            car(b, Frame.standing(spot[0], spot[1], 0, float(np.arctan2(*(end - start)[::-1]))), random)
    return b.build()
