"""The cells of a picture that coverage is counted in."""

from __future__ import annotations

import numpy as np
import pycolmap

GRID = 64  # cells along the longer side of an image: 16 pixels of 1024


def cell_numbers(points: np.ndarray, camera: pycolmap.Camera) -> np.ndarray:
    """(N,) the cell that each keypoint (N, 2) lies in."""
    size = max(camera.width, camera.height) / GRID
    column, row = np.floor(np.asarray(points, np.float64).T / size).astype(np.int64)
    return row * (GRID + 1) + column
