"""Walls with openings, and the relief around them. The facade's plane is local y = 0; y grows towards the street."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder


@dataclass(frozen=True)
class Opening:
    """A hole in a wall, filled `depth` behind its face. `arch` is the rise of a round top (0: flat)."""

    x0: float
    x1: float
    z0: float
    z1: float
    kind: Material
    depth: float = 0.18
    arch: float = 0.0
    tint: tuple | np.ndarray = (0.8, 0.8, 0.78)
    seed: float = 0.0
    panes: tuple[int, int] = (2, 3)

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.z1 - self.z0


@dataclass(frozen=True)
class WallSkin:
    """A wall's material."""

    material: Material
    tint: np.ndarray
    params: tuple = ()


def pierced_wall(
    b: MeshBuilder,
    frame: Frame,
    x: tuple[float, float],
    z: tuple[float, float],
    skin: WallSkin,
    openings: list[Opening],
    reveal: WallSkin | None = None,
) -> None:
    """The wall around its openings, in rectangles, and everything inside the openings."""
    levels = sorted({z[0], z[1], *(o.z0 for o in openings), *(o.z1 for o in openings)})
    for low, high in itertools.pairwise(levels):
        left = x[0]
        for hole in sorted((o for o in openings if o.z0 < high and o.z1 > low), key=lambda o: o.x0):
            if hole.x0 > left:
                b.panel(frame, (left, hole.x0), (low, high), 0, skin.material, skin.tint, skin.params)
            left = max(left, hole.x1)
        if left < x[1]:
            b.panel(frame, (left, x[1]), (low, high), 0, skin.material, skin.tint, skin.params)
    for opening in openings:
        _fill(b, frame, opening, skin, reveal or skin)


def _fill(b: MeshBuilder, frame: Frame, o: Opening, skin: WallSkin, reveal: WallSkin) -> None:
    d, spring = -o.depth, o.z1 - o.arch
    sides = [
        [(o.x0, d, o.z0), (o.x0, d, spring), (o.x0, 0, spring), (o.x0, 0, o.z0)],
        [(o.x1, 0, o.z0), (o.x1, 0, spring), (o.x1, d, spring), (o.x1, d, o.z0)],
        [(o.x0, 0, o.z0), (o.x1, 0, o.z0), (o.x1, d, o.z0), (o.x0, d, o.z0)],
    ]
    if o.arch > 0:
        a = np.linspace(np.pi, 0, 13)
        xs, zs = (o.x0 + o.x1) / 2 + np.cos(a) * o.width / 2, spring + np.sin(a) * o.arch
        for i in range(12):
            (p, q), (r, t) = xs[i : i + 2], zs[i : i + 2]
            sides.append([(p, d, r), (q, d, t), (q, 0, t), (p, 0, r)])
            b.quads(frame, [[(p, 0, r), (p, 0, o.z1), (q, 0, o.z1), (q, 0, t)]], skin.material, skin.tint, skin.params)
    else:
        sides.append([(o.x0, d, o.z1), (o.x1, d, o.z1), (o.x1, 0, o.z1), (o.x0, 0, o.z1)])
    faces = np.array(sides)
    inward = _facing(faces, np.array([(o.x0 + o.x1) / 2, d / 2, (o.z0 + o.z1) / 2]))
    b.quads(frame, inward, reveal.material, reveal.tint, reveal.params)
    across, up = o.panes
    b.panel(frame, (o.x0, o.x1), (o.z0, o.z1), d, o.kind, o.tint, (o.width, o.height, o.seed, across, up), own_uv=True)


def _facing(quads: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Turn quads (n, 4, 3) over where needed so that they face a point."""
    normal = np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])
    away = np.einsum("ni,ni->n", normal, target - quads.mean(1)) < 0
    return np.where(away[:, None, None], quads[:, ::-1], quads)


def surround(b: MeshBuilder, frame: Frame, o: Opening, stone: WallSkin, style: str) -> None:
    """Stone around a window: 'plain' band, 'hood' with a cornice above, 'sill' alone, 'keystone' over an arch."""
    args = (stone.material, stone.tint, stone.params)
    out, wide = 0.045, 0.14
    b.box(frame, (o.x0 - 0.12, -o.depth * 0.5, o.z0 - 0.09), (o.x1 + 0.12, 0.12, o.z0), *args, faces="+x-x+y+z-z")
    if style == "sill":
        return
    top = o.z1 - o.arch
    b.box(frame, (o.x0 - wide, 0, o.z0), (o.x0, out, top), *args, faces="+x-x+y+z")
    b.box(frame, (o.x1, 0, o.z0), (o.x1 + wide, out, top), *args, faces="+x-x+y+z")
    if o.arch > 0:
        _arch_band(b, frame, o, stone, wide, out)
    else:
        b.box(frame, (o.x0 - wide, 0, o.z1), (o.x1 + wide, out, o.z1 + wide), *args, faces="+x-x+y+z-z")
    if style == "hood":
        z = o.z1 + wide
        b.box(frame, (o.x0 - wide - 0.04, 0, z), (o.x1 + wide + 0.04, 0.10, z + 0.07), *args, faces="+x-x+y+z-z")
        b.box(frame, (o.x0 - wide - 0.12, 0, z + 0.07), (o.x1 + wide + 0.12, 0.2, z + 0.15), *args, faces="+x-x+y+z-z")
    if style == "keystone":
        middle = (o.x0 + o.x1) / 2
        outline = [
            (middle - 0.08, o.z1 - 0.05),
            (middle + 0.08, o.z1 - 0.05),
            (middle + 0.14, o.z1 + 0.3),
            (middle - 0.14, o.z1 + 0.3),
        ]
        b.prism(frame, np.array(outline), (0, 0.11), *args)


def _arch_band(b: MeshBuilder, frame: Frame, o: Opening, stone: WallSkin, wide: float, out: float) -> None:
    a = np.linspace(np.pi, 0, 13)
    middle, spring = (o.x0 + o.x1) / 2, o.z1 - o.arch
    inner = np.stack([middle + np.cos(a) * o.width / 2, spring + np.sin(a) * o.arch], 1)
    outer = np.stack([middle + np.cos(a) * (o.width / 2 + wide), spring + np.sin(a) * (o.arch + wide)], 1)
    for i in range(12):  # wedge stones, each a little different in tone
        outline = np.array([inner[i], inner[i + 1], outer[i + 1], outer[i]])
        tone = 0.88 + 0.24 * ((i * 7) % 5) / 4
        b.prism(frame, outline, (0, out), stone.material, np.asarray(stone.tint) * tone, stone.params)


def shutters(b: MeshBuilder, frame: Frame, o: Opening, tint: np.ndarray, random: np.random.Generator) -> None:
    """A pair of opened shutters, not quite flat against the wall."""
    half = o.width / 2
    for hinge, turn in ((o.x0 - 0.02, 1), (o.x1 + 0.02, -1)):
        angle = turn * random.uniform(0.02, 0.22)
        leaf = frame.shifted(hinge, 0.05, o.z0).turned(-angle)
        x = (-half, 0.0) if turn > 0 else (0.0, half)
        b.box(leaf, (x[0], 0, 0), (x[1], 0.04, o.height), Material.PLANKS, tint, (o.seed, 0.3), faces="+x-x-y+z-z")
        b.panel(
            leaf, x, (0, o.height), 0.04, Material.SHUTTER, tint, (half, o.height, o.seed + turn * 0.1), own_uv=True
        )


def quoins(b: MeshBuilder, frame: Frame, x: float, side: int, height: float, stone: WallSkin) -> None:
    """Alternating corner stones up the edge of a facade; `side` is +1 if the facade lies at larger x."""
    for i in range(int(height / 0.34)):
        long = 0.52 if i % 2 else 0.34
        lo, hi = sorted((x, x + side * long))
        b.box(
            frame,
            (lo, 0, i * 0.34 + 0.008),
            (hi, 0.05, i * 0.34 + 0.332),
            stone.material,
            np.asarray(stone.tint) * (0.9 + 0.2 * ((i * 5) % 7) / 6),
            (*stone.params[:1],),
            faces="+x-x+y+z-z",
        )


def flower_box(b: MeshBuilder, frame: Frame, o: Opening, random: np.random.Generator) -> None:
    b.box(
        frame,
        (o.x0 + 0.05, 0.06, o.z0),
        (o.x1 - 0.05, 0.26, o.z0 + 0.16),
        Material.PLANKS,
        rgb("#6b4a33"),
        (o.seed, 0.1),
    )
    colors = (rgb("#b3242e"), rgb("#d9588b"), rgb("#e8d9d9"), rgb("#7a3fa0"), rgb("#e0a92e"))
    bloom = colors[random.integers(len(colors))]
    for _ in range(36):
        center = random.uniform((o.x0 + 0.05, 0.04, o.z0 + 0.12), (o.x1 - 0.05, 0.32, o.z0 + 0.38))
        size = random.uniform(0.03, 0.07)
        axes = random.normal(size=(2, 3))
        axes *= size / np.linalg.norm(axes, axis=1, keepdims=True)
        tint = bloom if random.random() < 0.5 else rgb("#3f6a2c") * random.uniform(0.7, 1.3)
        corners = [center - axes[0], center - axes[1], center + axes[0], center + axes[1]]
        b.quads(frame, [corners], Material.LEAF, tint, (random.random(),), two_sided=True)
