"""Round things as quads: cylinders and cones, lofted bodies, ellipsoids. Facets are flat; shading follows the true curve."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from pdc_sfm.scenes.render.mesh import Frame


class RoundShapes:
    """The round part of a MeshBuilder, which has `quads` and `fan`."""

    if TYPE_CHECKING:
        quads: Callable[..., None]
        fan: Callable[..., None]

    def cylinder(
        self,
        frame: Frame,
        radius: tuple[float, float],
        z: tuple[float, float],
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        sides: int = 12,
        caps: str = "",
    ) -> None:
        """A round (or conical) post about the local z axis; `caps` may hold '+' (top) and '-' (bottom)."""
        angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
        ring = np.stack([np.cos(angles), np.sin(angles)], 1)
        low = np.concatenate([ring * radius[0], np.full((sides, 1), z[0])], 1)
        top = np.concatenate([ring * radius[1], np.full((sides, 1), z[1])], 1)
        slope = (radius[0] - radius[1]) / max(z[1] - z[0], 1e-6)
        curve = np.zeros((3, 4))
        curve[0, 0] = curve[1, 1] = 1 / max(radius[0], radius[1], 1e-6)
        curve[2, 3] = slope
        arc = 2 * np.pi * max(radius) / sides
        low_next, top_next = np.roll(low, -1, 0), np.roll(top, -1, 0)
        along = low_next - low + top_next - top
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        # each facet carries its own stretch of the unrolled texture
        start = low - along * (arc * np.arange(sides))[:, None] - np.array([0, 0, z[0]])
        axes = np.stack([along, np.broadcast_to([0.0, 0, 1], along.shape)], 1)
        self.quads(frame, np.stack([low, low_next, top_next, top], 1), material, tint, params, start, axes, curve=curve)
        if "+" in caps:
            self.fan(frame, top, material, tint, params)
        if "-" in caps:
            self.fan(frame, low[::-1], material, tint, params)

    def loft(
        self,
        frame: Frame,
        rings: list[tuple[float, float, float]],
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        sides: int = 14,
    ) -> None:
        """A body of upright elliptic rings (z, radius in x, radius in y), from below to above."""
        angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
        for (z0, a0, b0), (z1, a1, b1) in itertools.pairwise(rings):
            low = np.stack([a0 * np.cos(angles), b0 * np.sin(angles), np.full(sides, z0)], 1)
            top = np.stack([a1 * np.cos(angles), b1 * np.sin(angles), np.full(sides, z1)], 1)
            a, b = (a0 + a1) / 2, (b0 + b1) / 2
            curve = np.zeros((3, 4))
            curve[0, 0], curve[1, 1] = 1 / a**2, 1 / b**2
            curve[2, 3] = (a0 - a1 + b0 - b1) / 2 / (z1 - z0) / min(a, b)
            corners = np.stack([low, np.roll(low, -1, 0), np.roll(top, -1, 0), top], 1)
            self.quads(
                frame, corners, material, tint, params, uv_axes=np.array([[0.6, 0.8, 0], [0, 0, 1.0]]), curve=curve
            )

    def ellipsoid(
        self,
        frame: Frame,
        center: ArrayLike,
        radii: ArrayLike,
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        sides: int = 10,
        rings: int = 6,
    ) -> None:
        azimuth, polar = np.meshgrid(np.linspace(0, 2 * np.pi, sides + 1), np.linspace(0, np.pi, rings + 1))
        sphere = np.stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), -np.cos(polar)], -1)
        sizes = np.asarray(radii, float)
        points = np.asarray(center) + sphere * sizes
        corners = np.stack([points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]], 2).reshape(-1, 4, 3)
        matrix = np.diag(1 / sizes**2) * sizes.max()
        curve = np.concatenate([matrix, -(matrix @ np.asarray(center, float))[:, None]], 1)
        self.quads(frame, corners, material, tint, params, center, np.array([[0.8, 0.6, 0], [0, 0, 1.0]]), curve=curve)
