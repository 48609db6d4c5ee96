"""Small things: boxes, books, papers, mugs, bottles, balls, blobs and reliefs, each standing on z = 0 of its frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pdc_sfm.scenes.render.mesh import Frame
from pdc_sfm.scenes.worlds.skins import Skin
from pdc_sfm.scenes.worlds.solids import Solids


@dataclass(frozen=True)
class Wardrobe:
    """Hands out skins. `random` decides; the same picture comes again now and then, elsewhere."""

    textures: int  # how many there are
    random: np.random.Generator

    def skin(self, extent: float, plain: float = 0.25) -> Skin:
        """Any picture at about the given size; a share of `plain` is nearly without one."""
        random = self.random
        contrast = random.uniform(0.02, 0.25) if random.random() < plain else random.uniform(0.6, 1.0)
        tint = tuple(np.clip(np.exp(random.normal(0, 0.2, 3)), 0.5, 1.4) * random.uniform(0.6, 1.15))
        return Skin(
            int(random.integers(self.textures)),
            float(extent * np.exp(random.normal(0, 0.3))),
            tint,
            float(contrast),
            float(random.random() < 0.3) * random.uniform(0.05, 0.6),
            offset=(float(random.uniform(0, 2)), float(random.uniform(0, 2))),
        )

    def print(self, width: float) -> Skin:
        """A picture that fills a surface of this width."""
        return replace(self.skin(width, plain=0), extent=float(width), offset=(0.0, 0.0))


def package(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """A box, printed the same or differently on its sides; the back may look like the front."""
    x, y, z = size * wear.random.uniform(0.25, 0.6, 3)
    faces = ("+x-x+y-y", "+z-z") if wear.random.random() < 0.5 else ("+x", "-x", "+y", "-y", "+z", "-z")
    for side in faces:
        b.block(frame, (-x, -y, 0), (x, y, 2 * z), wear.print(2 * max(x, y, z)), side)


def book(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """A book that lies; its pages are plain."""
    x, y, z = 0.5 * size, 0.5 * size * wear.random.uniform(0.6, 0.8), size * wear.random.uniform(0.04, 0.2)
    b.block(frame, (-x, -y, 0), (x, y, z), replace(wear.skin(size), contrast=0.1), "+x-x+y-y")
    b.level(frame, (-x, x), (-y, y), z, wear.print(2 * x))


def paper(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """A sheet or magazine, slightly curled."""
    columns, rows = 9, 7
    u, v = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows))
    height = size * wear.random.uniform(0.004, 0.05) * np.abs(u - wear.random.uniform(0.2, 0.8)) ** 2 * 4 + 0.002
    points = np.stack([(u - 0.5) * size, (v - 0.5) * size * 0.72, height], -1)
    b.surface(frame, points, np.stack([u * size, v * size * 0.72], -1), wear.print(size))


def mug(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """A mug, tin or drum; its print goes round once or several times."""
    radius = size * wear.random.uniform(0.2, 0.45)
    turns = int(wear.random.integers(1, 4))
    skin = replace(wear.skin(size), extent=2 * np.pi * radius / turns / 2, offset=(0.0, 0.0))
    b.post(
        frame, (radius, radius * wear.random.uniform(0.75, 1.1)), (0, size * wear.random.uniform(0.4, 1.2)), skin, 28
    )


def bottle(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """A turned body: bottle, vase, figurine. Mirrored pictures make its back much like its front."""
    rings, sides = 26, 33
    t = np.linspace(0, 1, rings)
    knots = wear.random.uniform(0.25, 1.0, 6)
    knots[-1] *= 0.5
    radius = size * 0.3 * np.interp(t, np.linspace(0, 1, 6), knots)
    radius = np.convolve(np.pad(radius, 2, mode="edge"), np.ones(5) / 5, "valid")
    radius[-1] = 1e-4  # closed above
    angle = np.linspace(0, 2 * np.pi, sides)
    height = size * wear.random.uniform(0.8, 1.5) * t
    points = np.stack(
        [radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle), np.tile(height[:, None], sides)], -1
    )
    _around(b, frame, points, size, wear)


def blob(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """A rounded lump: stone, fruit, toy."""
    rings, sides = 22, 33
    polar, azimuth = np.meshgrid(np.linspace(0, np.pi, rings), np.linspace(0, 2 * np.pi, sides), indexing="ij")
    direction = np.stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), -np.cos(polar)], -1)
    radius = np.ones_like(polar)
    for _ in range(int(wear.random.integers(2, 9))):
        axis = wear.random.normal(size=3)
        wave = direction @ (axis / np.linalg.norm(axis))
        radius += wear.random.normal(0, 0.09) * np.cos(wear.random.uniform(1, 5) * wave + wear.random.uniform(0, 6))
    shape = size * 0.5 * wear.random.uniform(0.5, 1.0, 3)
    points = direction * radius[..., None] * shape
    points[..., 2] -= points[..., 2].min()
    _around(b, frame, points, size, wear)


def _around(b: Solids, frame: Frame, points: np.ndarray, size: float, wear: Wardrobe) -> None:
    """A closed surface (rings, sides, 3), its picture wrapped so that mirrored ends meet at the seam."""
    rings, sides = points.shape[:2]
    turns = int(wear.random.integers(1, 4))
    u = np.linspace(0, 2 * turns, sides)
    v = np.linspace(0, 1.2, rings)
    skin = replace(wear.skin(size), extent=1.0, offset=(0.0, 0.0))
    b.surface(frame, points, np.stack(np.broadcast_arrays(u, v[:, None]), -1), skin)


def relief(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """A carved slab, upright."""
    side = 34
    u, v = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
    depth = np.zeros_like(u)
    for _ in range(int(wear.random.integers(3, 9))):
        x, y, width = wear.random.uniform(0.1, 0.9), wear.random.uniform(0.1, 0.9), wear.random.uniform(0.06, 0.25)
        depth += wear.random.uniform(-0.6, 1.0) * np.exp(-((u - x) ** 2 + (v - y) ** 2) / width**2)
    depth *= size * 0.16
    thick = float(-depth.min()) + 0.05 * size
    points = np.stack([(0.5 - u) * size, depth + thick / 2, v * size], -1)
    b.surface(frame, points, np.stack([u * size, v * size], -1), wear.print(size))
    b.block(frame, (-size / 2, -thick, 0), (size / 2, -thick / 2, size), replace(wear.skin(size), contrast=0.2))


def stack(b: Solids, frame: Frame, size: float, wear: Wardrobe) -> None:
    """Boxes of one design above each other, each a little turned."""
    height = 0.0
    design = [wear.print(size), wear.print(size)]
    for _ in range(int(wear.random.integers(2, 6))):
        x, y, z = size * wear.random.uniform((0.25, 0.2, 0.12), (0.45, 0.35, 0.3))
        turned = frame.shifted(z=height).turned(wear.random.normal(0, 0.3))
        b.block(turned, (-x, -y, 0), (x, y, z), design[int(wear.random.integers(2))])
        height += z


Shape = Callable[[Solids, Frame, float, Wardrobe], None]
FLAT: tuple[Shape, ...] = (paper, paper, book)
STANDING: tuple[Shape, ...] = (package, mug, bottle, blob, relief, stack)


def clutter(
    b: Solids, frame: Frame, area: tuple[float, float], count: int, size: float, wear: Wardrobe, flat: float = 0.4
) -> None:
    """Things of about `size` metres, strewn over a level area (width, depth) around the frame's origin without overlap."""
    placed: list[tuple[float, float, float]] = []
    for _ in range(count):
        own = float(size * np.exp(wear.random.normal(0, 0.35)))
        for _ in range(20):
            x, y = (float(wear.random.uniform(-0.5, 0.5) * side) for side in area)
            reach = 0.55 * own
            fits = abs(x) + reach <= area[0] / 2 and abs(y) + reach <= area[1] / 2
            if fits and all(np.hypot(x - a, y - c) > reach + r for a, c, r in placed):
                break
        else:
            continue
        placed.append((x, y, reach))
        kinds = FLAT if wear.random.random() < flat else STANDING
        kinds[int(wear.random.integers(len(kinds)))](
            b, frame.shifted(x, y).turned(wear.random.uniform(0, 6.3)), own, wear
        )
