"""The points of a model as arrays and as a PLY file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.files import atomic_path

_VERTEX = np.dtype([("xyz", "<f4", 3), ("rgb", "u1", 3)])


def model_points(model: pycolmap.Reconstruction) -> tuple[np.ndarray, np.ndarray]:
    """Positions (N, 3) float64 and colors (N, 3) uint8 of all points."""
    points, colors = np.zeros((model.num_points3D(), 3)), np.zeros((model.num_points3D(), 3), np.uint8)
    for row, point in enumerate(model.points3D.values()):
        points[row], colors[row] = point.xyz, point.color
    return points, colors


def remove_outliers(points: np.ndarray, neighbors: int = 20, deviations: float = 2.0) -> np.ndarray:
    """(N,) bool: points whose mean distance to their neighbors is not far above the usual (statistical removal)."""
    from scipy.spatial import cKDTree

    if len(points) <= neighbors:
        return np.ones(len(points), bool)
    distances = cKDTree(points).query(points, k=neighbors + 1)[0][:, 1:].mean(axis=1)  # the first is the point itself
    return distances <= distances.mean() + deviations * distances.std()


def write_ply(path: Path | str, points: np.ndarray, colors: np.ndarray) -> None:
    """Write (N, 3) points with (N, 3) uint8 colors as binary PLY."""
    vertices = np.empty(len(points), _VERTEX)
    vertices["xyz"], vertices["rgb"] = points, colors
    axes = "".join(f"property float {axis}\n" for axis in "xyz")
    channels = "".join(f"property uchar {channel}\n" for channel in ("red", "green", "blue"))
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n{axes}{channels}end_header\n"
    with atomic_path(path) as partial:
        partial.write_bytes(header.encode("ascii") + vertices.tobytes())


def read_ply(path: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """Read what `write_ply` wrote."""
    header, _, body = Path(path).read_bytes().partition(b"end_header\n")
    count = next(int(line.split()[-1]) for line in header.decode("ascii").splitlines() if line.startswith("element"))
    vertices = np.frombuffer(body, _VERTEX, count)
    return vertices["xyz"].astype(np.float64), vertices["rgb"].copy()
