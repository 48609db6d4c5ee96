"""Light that reaches a place: the sun and the open sky by shadow maps, lamps by distance.

A shadow map is the town seen along parallel rays. One fine map serves the sun; some thirty coarse ones, spread over the
sky, add up to soft light that gets lost under awnings, in corners and in narrow streets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.scenes.render.mesh import Mesh
from pdc_sfm.scenes.render.raster import draw, parallel_drawing

RADIUS = 40.0  # metres around the middle of the town that the maps cover
CENTER = np.array([0.0, 0.0, 6.0])
COARSER = 4.5  # sky maps' texels against the sun's


@dataclass(frozen=True)
class ShadowMap:
    """How far light along `direction` (unit, towards the light) gets."""

    raster_from_world: np.ndarray  # (2, 4) float32
    direction: np.ndarray  # (3,) float32
    nearest: np.ndarray  # (s, s) float32: X . direction of the surface nearest to the light
    texel: float  # metres

    def lit(self, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """Share of this light that arrives at (n, 3) points: (n,), 0 or 1 with a soft edge of about a texel."""
        away = points + normals * np.float32(1.0 * self.texel)
        xy = away @ self.raster_from_world[:, :3].T + self.raster_from_world[:, 3]
        reach = away @ self.direction + np.float32(0.5 * self.texel)
        return self._compare(xy, reach)

    def _compare(self, xy: np.ndarray, reach: np.ndarray) -> np.ndarray:
        side = self.nearest.shape[0]
        whole = np.clip(np.rint(xy), 0, side - 1).astype(np.int32)
        margin = reach - self.nearest.reshape(-1)[whole[:, 1] * side + whole[:, 0]]
        return np.clip(margin / np.float32(self.texel) + 0.5, 0, 1)


class FineShadowMap(ShadowMap):
    """The sun's map: nine samples are compared and blended by a quadratic spline, so that no texel shows."""

    def _compare(self, xy: np.ndarray, reach: np.ndarray) -> np.ndarray:
        side = self.nearest.shape[0]
        xy = np.clip(xy, 1, side - 2)
        whole = np.rint(xy)
        part = xy - whole
        weights = (0.5 * (0.5 - part) ** 2, 0.75 - part**2, 0.5 * (0.5 + part) ** 2)  # of -1, 0, +1: each (n, 2)
        whole = whole.astype(np.int32)
        flat, start = self.nearest.reshape(-1), whole[:, 1] * side + whole[:, 0]
        lit = np.zeros(len(xy), np.float32)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                near = flat[start + (dy * side + dx)]
                lit += weights[dx + 1][:, 0] * weights[dy + 1][:, 1] * (reach >= near)
        return lit


def shadow_map(
    mesh: Mesh,
    direction: np.ndarray,
    texel: float,
    fine: bool = False,
    center: np.ndarray = CENTER,
    radius: float = RADIUS,
) -> ShadowMap:
    """Draw what lies within `radius` of `center` (the town) as the light sees it, in texels of that many metres."""
    side = round(2 * radius / texel)
    direction = np.asarray(direction, float) / np.linalg.norm(direction)
    helper = np.array([0.0, 0.0, 1.0]) if abs(direction[2]) < 0.9 else np.array([0.0, 1.0, 0.0])
    right = np.cross(helper, direction)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(direction, right)]) * (side / (2 * radius))
    offset = side / 2 - axes @ center
    raster_from_world = np.concatenate([axes, offset[:, None]], 1)
    rows = np.concatenate([raster_from_world, [[*-direction, 0.0]]])
    _, nearest = draw(parallel_drawing(mesh, rows, (side, side)), (side, side))
    kind = FineShadowMap if fine else ShadowMap
    return kind(raster_from_world.astype(np.float32), direction.astype(np.float32), nearest, 2 * radius / side)


def sky_directions(count: int) -> np.ndarray:
    """Directions spread evenly over the sky from 5 degrees above the horizon, (count, 3)."""
    k = np.arange(count) + 0.5
    z = 0.09 + 0.91 * k / count
    angle = np.pi * (1 + 5**0.5) * k
    across = np.sqrt(1 - z * z)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], 1)


def sky_light(
    maps: list[ShadowMap], radiance: np.ndarray, points: np.ndarray, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Irradiance (n, 3) from the open sky, with `radiance` (maps, 3), and the share of the sky in view (n,)."""
    facing = np.stack([sky.direction for sky in maps], 1)
    cosine = np.maximum(normals @ facing, 0)  # (n, maps)
    for k, sky in enumerate(maps):
        toward = np.flatnonzero(cosine[:, k] > 0)
        cosine[toward, k] *= sky.lit(points[toward], normals[toward])
    solid_angle = np.float32(2 * np.pi * 0.91 / len(maps))
    return (cosine * solid_angle) @ radiance.astype(np.float32), cosine.sum(1) * (solid_angle / np.float32(np.pi))


def contact_shade(maps: list[ShadowMap], points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Share (n,) of the sky's light that visitors, drawn in a few maps of their own, leave to a place."""
    cosine = np.maximum(normals @ np.stack([sky.direction for sky in maps], 1), 0.02)
    lit = np.stack([sky.lit(points, normals) for sky in maps], 1)
    return (cosine * lit).sum(1) / cosine.sum(1)


def lamp_light(lamps: np.ndarray, color: np.ndarray, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Irradiance (n, 3) from lamps at (m, 3), each of the given color and strength at one metre (m, 3)."""
    total = np.zeros((len(points), 3), np.float32)
    for lamp, strength in zip(lamps.astype(np.float32), color.astype(np.float32)):
        toward = lamp - points
        square = np.einsum("ni,ni->n", toward, toward) + np.float32(0.05)
        # a little light turns the corner: walls and ground nearby send it on
        cosine = np.clip((np.einsum("ni,ni->n", toward, normals) / np.sqrt(square) + 0.12) / 1.12, 0, 1)
        total += (cosine / square)[:, None] * strength
    return total
