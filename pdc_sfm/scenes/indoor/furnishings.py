"""Furniture: local x along the wall it stands at, y into the room, z up; origin on the floor at its left end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pdc_sfm.scenes.objects.shapes import Wardrobe, clutter
from pdc_sfm.scenes.render.mesh import Frame
from pdc_sfm.scenes.worlds.skins import Skin
from pdc_sfm.scenes.worlds.solids import Solids


def bookcase(b: Solids, frame: Frame, width: float, wear: Wardrobe, detail: Wardrobe) -> float:
    """Boards with books and things; returns how far it reaches into the room."""
    random, own = wear.random, detail.random
    height, depth, board = random.uniform(1.0, 2.1), random.uniform(0.24, 0.36), 0.02
    wood = replace(wear.skin(0.8), contrast=random.uniform(0.1, 0.7))
    for x in (0.0, width - board):
        b.block(frame, (x, 0, 0), (x + board, depth, height), wood)
    b.picture(frame, (0, width), (0, height), 0.005, replace(wood, contrast=0.2))
    shelves = int(random.integers(3, 6))
    for k in range(shelves + 1):
        z = k * (height - board) / shelves
        b.block(frame, (0, 0, z), (width, depth, z + board), wood)
        if k == shelves:
            break
        room = (height - board) / shelves - board
        if own.random() < 0.7:
            _books(b, frame.shifted(0, 0, z + board), (board, width - board), room, depth, detail)
        else:
            middle = frame.shifted(width / 2, depth / 2, z + board)
            clutter(b, middle, (width - 0.1, depth), int(own.integers(2, 6)), 0.55 * room, detail, flat=0.1)
    return depth


def _books(b: Solids, frame: Frame, span: tuple[float, float], room: float, depth: float, wear: Wardrobe) -> None:
    random = wear.random
    x, kinds = span[0], [wear.skin(0.35) for _ in range(8)]
    while x < span[1] - 0.06:
        thick = random.uniform(0.015, 0.055)
        tall, deep = room * random.uniform(0.55, 0.95), depth * random.uniform(0.6, 0.9)
        skin = kinds[int(random.integers(8))]
        skin = replace(skin, offset=tuple(random.uniform(0, 2, 2).tolist()))
        if random.random() < 0.92:
            b.block(frame, (x, 0, 0), (x + thick, deep, tall), skin)
        x += thick + 0.001


def counter(b: Solids, frame: Frame, width: float, wear: Wardrobe, detail: Wardrobe) -> float:
    """A row of equal cupboards with a worktop, tiles and a second row above, as in kitchens."""
    random = wear.random
    depth, unit = 0.6, random.uniform(0.4, 0.65)
    front = replace(wear.skin(1.0, plain=0.7), gloss=random.uniform(0, 0.3))
    knob, top = Skin(front.texture, 1.0, (0.25, 0.25, 0.25), 0.1, 0.6), wear.skin(0.6, plain=0.3)
    b.block(frame, (0, 0, 0), (width, depth - 0.04, 0.86), replace(front, tint=(0.2, 0.2, 0.2)), "+x-x+y")
    b.block(frame, (0, 0, 0.86), (width, depth, 0.9), top)
    b.picture(frame, (0, width), (0.9, 1.45), 0.006, wear.skin(random.uniform(0.3, 1.2), plain=0.4))
    upper = random.random() < 0.7
    if upper:
        b.block(frame, (0, 0, 1.45), (width, 0.3, 2.1), replace(front, tint=(0.2, 0.2, 0.2)))
    for k in range(int(width / unit)):
        x = k * unit
        b.block(frame, (x + 0.006, depth - 0.05, 0.1), (x + unit - 0.006, depth - 0.02, 0.84), front)
        b.block(frame, (x + unit - 0.16, depth - 0.02, 0.74), (x + unit - 0.04, depth, 0.755), knob)
        if upper:
            b.block(frame, (x + 0.006, 0.29, 1.46), (x + unit - 0.006, 0.32, 2.09), front)
            b.block(frame, (x + unit - 0.06, 0.32, 1.5), (x + unit - 0.045, 0.34, 1.62), knob)
    clutter(
        b,
        frame.shifted(width / 2, depth / 2, 0.9),
        (width, depth),
        int(detail.random.integers(5, 14)),
        0.22,
        detail,
        0.2,
    )
    return depth


def desk(b: Solids, frame: Frame, width: float, wear: Wardrobe, detail: Wardrobe) -> float:
    """A desk against the wall with papers, things and a screen."""
    random = wear.random
    depth, height = random.uniform(0.6, 0.85), 0.74
    _table(b, frame.shifted(width / 2, depth / 2 + 0.02), (width, depth), height, wear)
    top = frame.shifted(width / 2, depth / 2, height)
    if random.random() < 0.6:
        side = min(0.7, width / 2)
        stand = frame.shifted(random.uniform(0.1, width - side - 0.1), 0.12, height)
        b.block(stand, (0, 0, 0.1), (side, 0.05, 0.1 + 0.6 * side), Skin(0, 1.0, (0.04, 0.04, 0.04), 0.1, 0.3))
        b.picture(
            stand, (0.015, side - 0.015), (0.115, 0.085 + 0.6 * side), 0.052, replace(detail.print(side), glow=0.35)
        )
        b.block(stand, (side / 2 - 0.05, 0.0, 0), (side / 2 + 0.05, 0.04, 0.1), Skin(0, 1.0, (0.05, 0.05, 0.05), 0.1))
    clutter(b, top.shifted(y=0.08), (width, depth - 0.2), int(detail.random.integers(4, 12)), 0.2, detail, 0.6)
    return depth


def sofa(b: Solids, frame: Frame, width: float, wear: Wardrobe, detail: Wardrobe) -> float:
    """A sofa or bed with cushions."""
    cloth, deep = replace(wear.skin(0.7, plain=0.4), gloss=0.0), wear.random.uniform(0.8, 1.1)
    b.block(frame, (0, 0, 0.05), (width, deep, 0.42), cloth)
    b.block(frame, (0, 0, 0.42), (width, 0.22, 0.85), cloth)
    for x in (0.0, width - 0.18):
        b.block(frame, (x, 0, 0.42), (x + 0.18, deep, 0.62), cloth)
    for _ in range(int(detail.random.integers(1, 5))):
        skin = detail.skin(0.4)
        x = float(detail.random.uniform(0.4, max(width - 0.4, 0.41)))
        spot = frame.shifted(x, 0.38, 0.62).turned(detail.random.normal(0, 0.3)).tilted(-0.35)
        b.ellipsoid(spot, (0, 0, 0), (0.24, 0.09, 0.2), 0, skin.tint, skin.params, 18, 12)
    return deep


def table(b: Solids, frame: Frame, size: tuple[float, float], wear: Wardrobe, detail: Wardrobe) -> None:
    """A table with things on it and chairs around; the frame stands in its middle."""
    _table(b, frame, size, 0.74, wear)
    clutter(b, frame.shifted(z=0.74), size, int(detail.random.integers(4, 14)), 0.2, detail, 0.5)
    cloth = wear.skin(0.5)
    for k in range(int(wear.random.integers(0, 5))):
        side = (-1) ** k
        x = (k // 2 - 0.5) * 0.7 + detail.random.normal(0, 0.1)
        spot = frame.shifted(x, side * (size[1] / 2 + 0.2)).turned(
            detail.random.normal(0, 0.3) + (0 if side > 0 else np.pi)
        )
        _chair(b, spot, cloth)


def _table(b: Solids, frame: Frame, size: tuple[float, float], height: float, wear: Wardrobe) -> None:
    x, y = size[0] / 2, size[1] / 2
    wood = wear.skin(0.9, plain=0.35)
    b.block(frame, (-x, -y, height - 0.035), (x, y, height), wood)
    for sx in (-1, 1):
        for sy in (-1, 1):
            cx, cy = sx * (x - 0.05), sy * (y - 0.05)
            b.block(
                frame,
                (cx - 0.025, cy - 0.025, 0),
                (cx + 0.025, cy + 0.025, height - 0.035),
                replace(wood, contrast=0.3),
            )


def _chair(b: Solids, frame: Frame, skin: Skin) -> None:
    wood = replace(skin, contrast=0.2, tint=(0.5, 0.4, 0.3))
    b.block(frame, (-0.21, -0.21, 0.43), (0.21, 0.21, 0.47), skin)
    b.block(frame, (-0.21, 0.18, 0.6), (0.21, 0.21, 0.92), skin)
    for x in (-0.2, 0.17):
        b.block(frame, (x, 0.18, 0.47), (x + 0.03, 0.21, 0.62), wood)
        for y in (-0.2, 0.17):
            b.block(frame, (x, y, 0), (x + 0.03, y + 0.03, 0.43), wood)


AT_WALLS = (bookcase, counter, desk, sofa)
