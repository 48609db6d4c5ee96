"""Roofs: pitched along the street, gabled towards it, stepped gables; dormers and chimneys."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder
from pdc_sfm.scenes.town.facade import Opening, WallSkin, pierced_wall, surround


def ridge_along(
    b: MeshBuilder, frame: Frame, width: float, depth: float, eaves: float, rise: float, roof: WallSkin, wall: WallSkin
) -> None:
    """A ridge parallel to the street: one slope faces the square."""
    over, back, ridge = 0.35, -depth, (-depth / 2, eaves + rise)
    pitch = rise / (depth / 2)
    low = (over, eaves - over * pitch + 0.12)
    front = [(width, low[0], low[1]), (0, low[0], low[1]), (0, *ridge), (width, *ridge)]
    rear = [(0, back - over, low[1]), (width, back - over, low[1]), (width, *ridge), (0, *ridge)]
    b.quads(frame, [front, rear], *_args(roof), two_sided=True)
    for x, outline in ((0.0, 1), (width, -1)):
        triangle = np.array([(x, 0, eaves), (x, back, eaves), (x, *ridge)])
        b.fan(frame, triangle[::-outline], *_args(wall))


def ridge_across(
    b: MeshBuilder, frame: Frame, width: float, depth: float, eaves: float, rise: float, roof: WallSkin, wall: WallSkin
) -> None:
    """A gable towards the street."""
    over, middle, top = 0.25, width / 2, eaves + rise
    pitch = rise / middle
    low = eaves - 0.3 * pitch + 0.1
    left = [(-0.3, over, low), (-0.3, -depth, low), (middle, -depth, top + 0.1), (middle, over, top + 0.1)]
    right = [
        (width + 0.3, -depth, low),
        (width + 0.3, over, low),
        (middle, over, top + 0.1),
        (middle, -depth, top + 0.1),
    ]
    b.quads(frame, [left[::-1], right[::-1]], *_args(roof), two_sided=True)
    b.fan(frame, np.array([(width, 0, eaves), (0, 0, eaves), (middle, 0, top)]), *_args(wall))
    b.fan(frame, np.array([(0, -depth, eaves), (width, -depth, eaves), (middle, -depth, top)]), *_args(wall))
    for sign in (1, -1):  # barge boards along the edge of the gable
        x = np.array([-0.3, middle]) if sign > 0 else np.array([width + 0.3, middle])
        z = np.array([low, top + 0.1])
        outline = np.stack([np.concatenate([x, x[::-1]]), np.concatenate([z - 0.22, z[::-1]])], 1)
        b.prism(
            frame,
            outline if sign > 0 else outline[::-1],
            (over - 0.04, over),
            Material.TIMBER,
            rgb("#5b4636"),
            (0.3, 0),
        )


def stepped_gable(
    b: MeshBuilder,
    frame: Frame,
    width: float,
    depth: float,
    eaves: float,
    rise: float,
    roof: WallSkin,
    wall: WallSkin,
    stone: WallSkin,
) -> None:
    """A gable wall that climbs in steps above the roof behind it."""
    ridge_across(b, frame.shifted(y=-0.4), width, depth - 0.4, eaves, rise * 0.93, roof, wall)
    steps = 5
    for i in range(steps):
        inset = width / 2 * i / steps * 0.95
        z0, z1 = eaves + rise * i / steps, eaves + rise * (i + 1) / steps + (0.35 if i == steps - 1 else 0)
        x0, x1 = inset, width - inset
        b.box(frame, (x0, -0.4, z0), (x1, 0, z1), *_args(wall), faces="+x-x+y-y+z")
        cap = width / 2 / steps * 0.95 if i < steps - 1 else (x1 - x0) / 2
        for lo, hi in ((x0 - 0.06, x0 + cap), (x1 - cap, x1 + 0.06)):
            b.box(frame, (lo, -0.46, z1), (hi, 0.07, z1 + 0.1), *_args(stone))


def dormer(
    b: MeshBuilder,
    frame: Frame,
    x: float,
    depth: float,
    eaves: float,
    rise: float,
    roof: WallSkin,
    wall: WallSkin,
    seed: float,
) -> None:
    """A small house on the slope that faces the street."""
    pitch = rise / (depth / 2)
    face, wide, high = -0.9, 1.15, 1.35
    base = eaves + 0.9 * pitch
    place = frame.shifted(x - wide / 2, face, base)
    hole = Opening(0.16, wide - 0.16, 0.15, high - 0.1, Material.WINDOW, 0.1, 0, rgb("#d8d4c8"), seed, (2, 2))
    pierced_wall(b, place, (0, wide), (-0.4, high), wall, [hole])
    surround(b, place, hole, WallSkin(Material.TIMBER, rgb("#8a8175"), (seed, 0)), "sill")
    reach = -(high + 0.6) / pitch
    for side in (0.0, wide):
        corners = [(side, 0, -0.4), (side, reach, -0.4), (side, reach, high), (side, 0, high)]
        b.quads(place, [corners], *_args(wall), two_sided=True)
    ridge = (wide / 2, high + 0.5)
    gable = np.array([(wide, 0, high), (0, 0, high), (ridge[0], 0, ridge[1])])
    b.fan(place, gable, *_args(wall))
    left = [
        (-0.15, 0.2, high - 0.1),
        (-0.15, reach * 1.4, high - 0.1),
        (ridge[0], reach * 1.4, ridge[1]),
        (ridge[0], 0.2, ridge[1]),
    ]
    right = [
        (wide + 0.15, reach * 1.4, high - 0.1),
        (wide + 0.15, 0.2, high - 0.1),
        (ridge[0], 0.2, ridge[1]),
        (ridge[0], reach * 1.4, ridge[1]),
    ]
    b.quads(place, [left[::-1], right[::-1]], *_args(roof), two_sided=True)


def chimney(b: MeshBuilder, frame: Frame, x: float, y: float, base: float, height: float, seed: float) -> None:
    skin = WallSkin(Material.BRICK, rgb("#8d5343"), (seed,))
    b.box(frame, (x - 0.35, y - 0.28, base), (x + 0.35, y + 0.28, base + height), *_args(skin))
    b.box(
        frame,
        (x - 0.42, y - 0.35, base + height),
        (x + 0.42, y + 0.35, base + height + 0.12),
        Material.STONE,
        rgb("#8f897d"),
    )
    for dx in (-0.17, 0.17):
        pot = frame.shifted(x + dx, y, base + height + 0.12)
        b.cylinder(pot, (0.11, 0.09), (0, 0.35), Material.STONE, rgb("#9b5a3c"), sides=8, caps="+")


def _args(skin: WallSkin) -> tuple[Material, np.ndarray, tuple]:
    return skin.material, skin.tint, skin.params
