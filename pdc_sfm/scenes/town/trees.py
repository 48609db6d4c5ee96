"""Trees: a trunk, boughs, and some thousands of leaf clumps around them."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder

_BARK = rgb("#6b6252")


def tree(
    b: MeshBuilder,
    frame: Frame,
    random: np.random.Generator,
    height: float = 7.0,
    spread: float = 2.2,
    leaves: int = 7000,
    tint: str = "#55702f",
) -> None:
    """A round-headed town tree of the given height and radius."""
    trunk = height * 0.38
    b.cylinder(frame, (0.2, 0.15), (0, trunk), Material.BARK, _BARK, (float(random.random()),), 10)
    b.cylinder(frame, (0.27, 0.2), (0, 0.25), Material.BARK, _BARK * 0.9, (0.1,), 10)
    center = np.array([0, 0, trunk + (height - trunk) * 0.52])
    shape = np.array([spread, spread, (height - trunk) * 0.55])
    lobes = []
    for _ in range(14):  # the crown is a cluster of lobes, each on its own bough
        direction = random.normal(size=3)
        direction /= np.linalg.norm(direction)
        lobe = center + direction * shape * random.uniform(0.35, 0.68)
        lobes.append(lobe)
        _bough(b, frame, np.array([0, 0, trunk * random.uniform(0.85, 1.0)]), lobe, 0.08)
    which = random.integers(len(lobes), size=leaves)
    offset = random.normal(size=(leaves, 3))
    offset /= np.linalg.norm(offset, axis=1, keepdims=True)
    radius = 0.52 * spread * random.uniform(0.25, 1.0, (leaves, 1)) ** 0.4
    place = np.array(lobes)[which] + offset * radius * [1, 1, 0.85]
    _leaves(b, frame, place, offset, random, rgb(tint))


def _leaves(
    b: MeshBuilder, frame: Frame, place: np.ndarray, outward: np.ndarray, random: np.random.Generator, tint: np.ndarray
) -> None:
    n = len(place)
    normal = outward + 0.7 * random.normal(size=(n, 3)) + [0, 0, 0.3]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    along = np.cross(normal, random.normal(size=(n, 3)))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.cross(normal, along)
    size = random.uniform(0.045, 0.095, (n, 1))
    wide, belly = across * size * 0.55, place - along * size * 0.25  # widest nearer to the stalk
    corners = np.stack([place - along * size, belly - wide, place + along * size, belly + wide], 1)
    tone = random.random(n)
    for group in range(24):  # clumps of one tone share a call
        pick = np.flatnonzero((tone * 24).astype(int) == group)
        b.quads(
            frame, corners[pick], Material.LEAF, tint * (0.8 + 0.4 * group / 24), ((group + 0.5) / 24,), two_sided=True
        )


def _bough(b: MeshBuilder, frame: Frame, start: np.ndarray, end: np.ndarray, radius: float) -> None:
    up = end - start
    length = float(np.linalg.norm(up))
    up = up / length
    side = np.cross(up, [0.9, 0.3, 0.1])
    side /= np.linalg.norm(side)
    axes = np.stack([side, np.cross(up, side), up]) @ frame.axes
    b.cylinder(
        Frame(frame.to_world(start), axes), (radius, radius * 0.35), (0, length), Material.BARK, _BARK, (0.5,), 6
    )
