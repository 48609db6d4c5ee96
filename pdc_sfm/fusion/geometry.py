"""From one posed view to another: points with an inverse depth, and planes.

A plane's inverse depth is affine in the pixel: rho(x, y) = gx x + gy y + c. A hypothesis of a pixel is therefore its inverse
depth and the gradient of it, and it holds as it is for the pixels around.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.colmap.io.posed_views import PosedView
from pdc_sfm.pixels import Size, rescale_matrix

NEAREST = 1e-6  # depth in the other view by depth in this one: less is behind it


def scaled_intrinsics(view: PosedView, size: Size) -> np.ndarray:
    """Of the view at another size."""
    return rescale_matrix(view.size, size) @ view.intrinsics


def scaled_size(size: Size, scale: float) -> Size:
    """(width, height) at a scale."""
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


@dataclass(frozen=True)
class Transfer:
    """Pixels of one view with inverse depths, to pixels of another: u ~ matrix (x, y, 1) + rho shift."""

    matrix: np.ndarray  # (3, 3) float32
    shift: np.ndarray  # (3,) float32

    @staticmethod
    def between(view: PosedView, other: PosedView, size: Size, other_size: Size) -> Transfer:
        """Of two views, each at some size."""
        rotation = other.cam_from_world[:, :3] @ view.cam_from_world[:, :3].T
        translation = other.cam_from_world[:, 3] - rotation @ view.cam_from_world[:, 3]
        there = scaled_intrinsics(other, other_size)
        matrix = there @ rotation @ np.linalg.inv(scaled_intrinsics(view, size))
        return Transfer(matrix.astype(np.float32), (there @ translation).astype(np.float32))

    def rows(self, x: np.ndarray, y: np.ndarray, rho: np.ndarray) -> list[np.ndarray]:
        """The three homogeneous coordinates, of the shape of `x`; the last is the ratio of depths."""
        return [row[0] * x + row[1] * y + row[2] + shift * rho for row, shift in zip(self.matrix, self.shift)]

    def points(self, x: np.ndarray, y: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pixels u, v there, and the inverse depth there; NaN behind the other camera."""
        u, v, ratio = self.rows(x, y, rho)
        ratio = np.where(ratio > NEAREST, ratio, np.nan)
        return u / ratio, v / ratio, rho / ratio

    def parallax(self, x: np.ndarray, y: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """Pixels by which the point there moves for a change of inverse depth."""
        u, v, _ = self.points(x, y, rho)
        ratio = np.maximum(self.rows(x, y, rho)[2], NEAREST)
        return np.hypot(self.shift[0] - u * self.shift[2], self.shift[1] - v * self.shift[2]) / ratio

    def planes(self, gradient: np.ndarray) -> np.ndarray:
        """Planes of this view (..., 3), rho = gx x + gy y + c, as planes of the other.

        With (x, y, 1) = z K X and n = K' g, a plane is n X = 1; in the other frame it is R n / (1 + n R' t).
        """
        back = np.linalg.inv(self.matrix.astype(np.float64))
        moved = gradient @ back  # by the homography of infinity
        scale = 1 + moved @ self.shift.astype(np.float64)
        return moved / np.where(np.abs(scale) > 1e-9, scale, np.nan)[..., None]


def pixel_grid(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """x and y of all pixels, (h, w) float32."""
    y, x = np.mgrid[0 : size[1], 0 : size[0]].astype(np.float32)
    return x, y


def lookup(values: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Values (h, w) at the pixels nearest to (u, v); 0 outside."""
    height, width = values.shape
    column, row = np.nan_to_num(u, nan=-9.0) + 0.5, np.nan_to_num(v, nan=-9.0) + 0.5
    on = (column >= 0) & (row >= 0) & (column < width) & (row < height)
    column, row = (np.where(on, axis, 0).astype(np.int32) for axis in (column, row))
    return np.where(on, values[row, column], 0)


def normals(rho: np.ndarray, gx: np.ndarray, gy: np.ndarray, intrinsics: np.ndarray) -> np.ndarray:
    """(h, w, 3) unit normals in the camera's frame, towards the camera, of planes (h, w)."""
    x, y = pixel_grid(rho.shape[::-1])
    plane = np.stack([gx, gy, rho - gx * x - gy * y], -1).astype(np.float64) @ intrinsics  # n = K' g
    length = np.linalg.norm(plane, axis=-1, keepdims=True)
    return (-plane / np.maximum(length, 1e-12)).astype(np.float32)
