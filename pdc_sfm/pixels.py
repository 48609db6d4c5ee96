"""The pixel convention, in one place.

A pixel's *index* is its position: the center of the top-left pixel is (0, 0), as in hloc files, numpy and torch grids.
COLMAP puts the image's top-left *corner* at (0, 0), so that pixel's center is (0.5, 0.5) there.
Resizing maps corners to corners, which is what area and bilinear (align_corners=False) interpolation do.
"""

from __future__ import annotations

import numpy as np

Size = tuple[int, int]  # (width, height), as hloc's image_size
ImageShape = tuple[int, int]  # (height, width), as arrays and tensors have it
MIN_SIDE = 16  # pixels of the smallest image that can be matched: one cell of the coarsest level
COARSE_SIDE = 256  # of the square in which the coarse branch of the network sees every image


def to_colmap(points: np.ndarray) -> np.ndarray:
    """(..., 2) pixel indices -> COLMAP coordinates."""
    return points + 0.5


def from_colmap(points: np.ndarray) -> np.ndarray:
    """(..., 2) COLMAP coordinates -> pixel indices."""
    return points - 0.5


def rescale(points: np.ndarray, from_size: Size, to_size: Size) -> np.ndarray:
    """(..., 2) pixel indices of an image -> pixel indices of the same image at another size."""
    scaled = np.empty(points.shape, points.dtype if points.dtype.kind == "f" else np.float64)
    for axis in (0, 1):  # apart: numpy is slow over rows of two
        scaled[..., axis] = (points[..., axis] + 0.5) * (np.float64(to_size[axis]) / from_size[axis]) - 0.5
    return scaled


def grid_points(grid_size: Size, image_size: Size) -> np.ndarray:
    """Centers of the cells of a (w, h) grid laid over an image, in the image's pixel indices: (h, w, 2) float32."""
    width, height = grid_size
    xy = np.stack(np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64)), -1)
    return rescale(xy, grid_size, image_size).astype(np.float32)


def rescale_matrix(from_size: tuple[float, float], to_size: tuple[float, float]) -> np.ndarray:
    """`rescale` as a homography: (3, 3) float64. Sizes, (width, height), may be parts of pixels."""
    x, y = to_size[0] / from_size[0], to_size[1] / from_size[1]
    return np.array([[x, 0.0, 0.5 * x - 0.5], [0.0, y, 0.5 * y - 0.5], [0.0, 0.0, 1.0]])


def transform(points: np.ndarray, homography: np.ndarray) -> np.ndarray:
    """(..., 2) points through a (3, 3) homography, in float64; points behind the horizon become NaN."""
    x, y = points[..., 0].astype(np.float64), points[..., 1].astype(np.float64)
    across, down, depth = (a * x + b * y + c for a, b, c in homography)
    depth = np.where(depth > 0, depth, np.nan)
    return np.stack((across / depth, down / depth), -1)


def inside(points: np.ndarray, size: Size) -> np.ndarray:
    """Which (..., 2) pixel indices lie on an image of (width, height)."""
    x, y = points[..., 0], points[..., 1]
    return (x >= -0.5) & (y >= -0.5) & (x <= size[0] - 0.5) & (y <= size[1] - 0.5)
