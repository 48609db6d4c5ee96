"""Shop fronts: display windows, a door, the name above, awnings and hanging signs."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.lettering import SHOPS, WORDS
from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder
from pdc_sfm.scenes.town.facade import Opening
from pdc_sfm.scenes.town.styles import House

BOARDS = ("#2f4a3c", "#5c2a26", "#26364a", "#3a3530", "#d8cfb8", "#b79a4e", "#7d8a86", "#30302e")
CLOTHS = (
    ("#a3342c", "#e2dccb"),
    ("#2f5a45", "#e2dccb"),
    ("#31496e", "#ddd6c4"),
    ("#c07a2c", "#efe6d0"),
    ("#6a6f73", "#d8d4c8"),
)


def shop_front(b: MeshBuilder, frame: Frame, house: House, random: np.random.Generator) -> list[Opening]:
    """Openings of a shop's ground floor; signs and awnings are built at once."""
    board = rgb(BOARDS[random.integers(len(BOARDS))])
    paint = np.where(board.mean() > 0.3, board * 0.4, board)
    top = house.ground - 1.0
    openings, x = [], 0.45
    entrance = random.integers(2)
    parts = ["door", "show"] if entrance else ["show", "door"]
    parts += ["show"] if house.width > 7 else []
    show = (house.width - 0.9 - 1.15 - 0.35 * (len(parts) - 1)) / (len(parts) - 1)
    for part in parts:
        if part == "door":
            openings.append(Opening(x, x + 1.15, 0.0, top, Material.DOOR, 0.35, 0, paint, float(random.random())))
            x += 1.5
        else:
            openings.append(
                Opening(
                    x,
                    x + show,
                    0.45,
                    top,
                    Material.SHOP,
                    0.22,
                    0,
                    paint,
                    float(random.random()),
                    (max(1, int(show / 1.4)), 1),
                )
            )
            x += show + 0.35
    word = int(random.integers(len(SHOPS)))
    wide = min(house.width - 0.8, 0.55 * len(WORDS[word]) + 0.8)
    x0 = (house.width - wide) / 2
    b.box(
        frame, (x0, 0, top + 0.2), (x0 + wide, 0.09, top + 0.78), Material.PLANKS, board, (0.1, 0.3), faces="+x-x+z-z"
    )
    b.panel(
        frame,
        (x0, x0 + wide),
        (top + 0.2, top + 0.78),
        0.09,
        Material.SIGN,
        board,
        (wide, 0.58, word, float(random.random())),
        own_uv=True,
    )
    if random.random() < 0.55:
        _awning(b, frame, openings, top, random)
    if random.random() < 0.6:
        _hanging_sign(b, frame, house, word, random)
    return openings


def _awning(b: MeshBuilder, frame: Frame, openings: list[Opening], top: float, random: np.random.Generator) -> None:
    first, second = CLOTHS[random.integers(len(CLOTHS))]
    x0, x1 = openings[0].x0 - 0.1, openings[-1].x1 + 0.1
    params = (float(random.random()), 0.22, *rgb(second))
    out, drop = random.uniform(1.0, 1.5), random.uniform(0.45, 0.7)
    z = top + 0.15
    slope = [(x1, 0.05, z), (x0, 0.05, z), (x0, out, z - drop), (x1, out, z - drop)][::-1]
    edge = [(x0, out, z - drop), (x1, out, z - drop), (x1, out, z - drop - 0.22), (x0, out, z - drop - 0.22)]
    b.quads(frame, [slope, edge], Material.FABRIC, rgb(first), params, two_sided=True)
    for x in (x0 + 0.05, x1 - 0.05):
        b.box(frame, (x - 0.015, 0.0, z - drop - 0.03), (x + 0.015, out, z - drop), Material.METAL, rgb("#55585a"))


def _hanging_sign(b: MeshBuilder, frame: Frame, house: House, word: int, random: np.random.Generator) -> None:
    x, z = random.uniform(0.6, house.width - 0.6), house.ground + 0.35
    b.box(frame, (x - 0.02, 0, z + 0.75), (x + 0.02, 1.0, z + 0.79), Material.METAL, rgb("#2b2b2b"))
    tint = rgb(BOARDS[random.integers(len(BOARDS))])
    seed = float(random.random())
    for side in (1, -1):
        plate = frame.shifted(x + 0.02 * side, 0.55, z).turned(-side * np.pi / 2)
        b.panel(plate, (-0.35, 0.35), (0, 0.7), 0.0, Material.POSTER, tint, (0.7, 0.7, seed), own_uv=True)
    b.box(frame, (x - 0.02, 0.2, z), (x + 0.02, 0.9, z + 0.7), Material.METAL, rgb("#2b2b2b"), faces="+y-y+z-z")
