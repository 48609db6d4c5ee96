"""A cloud and the cameras as two PLY files, in one frame, for MeshLab, CloudCompare, Blender."""

from __future__ import annotations

import numpy as np

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers, write_ply
from pdc_sfm.colmap.types import Camera
from pdc_sfm.export.formats import Export, register
from pdc_sfm.files import atomic_path

COLOR = (214, 77, 43)  # of cameras
DEPTH = 0.03  # of a frustum, by the extent of cameras and points
SIDES = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]])  # triangles of a frustum: center, four corners
_VERTEX = np.dtype([("xyz", "<f4", 3), ("rgb", "u1", 3)])
_FACE = np.dtype([("count", "u1"), ("corners", "<i4", 3)])


@register("ply")
def write(export: Export) -> str:
    """points.ply, without stray points, and cameras.ply, a frustum for each image."""
    points, colors = model_points(export.model)
    keep = remove_outliers(points)
    points, colors = points[keep], colors[keep]
    write_ply(export.folder / "points.ply", points, colors)
    centers = np.array([-pose[:, :3].T @ pose[:, 3] for _, _, pose in export.views()])
    around = np.concatenate([points, centers])
    depth = DEPTH * float(np.linalg.norm(np.ptp(around, axis=0))) or 1.0
    _write_mesh(export, np.concatenate([_frustum(camera, pose, depth) for _, camera, pose in export.views()]))
    return f"{len(points):,} points, {len(centers)} cameras"


def _frustum(camera: Camera, pose: np.ndarray, depth: float) -> np.ndarray:
    """(5, 3) in the world: the center, then the image's corners, from the top left one clockwise."""
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * [camera.width, camera.height]
    rays = np.c_[np.nan_to_num(rays_of(camera, corners)), np.ones(4)]  # NaN: beyond what a fisheye lens shows
    in_camera = np.concatenate([np.zeros((1, 3)), depth * rays / np.linalg.norm(rays, axis=1, keepdims=True)])
    return (in_camera - pose[:, 3]) @ pose[:, :3]


def _write_mesh(export: Export, vertices: np.ndarray) -> None:
    rows = np.empty(len(vertices), _VERTEX)
    rows["xyz"], rows["rgb"] = vertices, COLOR
    count = len(vertices) // 5
    faces = np.empty(4 * count, _FACE)
    faces["count"], faces["corners"] = 3, (5 * np.arange(count)[:, None, None] + SIDES).reshape(-1, 3)
    header = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {len(rows)}\n"
        "property float x\nproperty float y\nproperty float z\n"
        "property uchar red\nproperty uchar green\nproperty uchar blue\n"
        f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    with atomic_path(export.folder / "cameras.ply") as partial:
        partial.write_bytes(header.encode("ascii") + rows.tobytes() + faces.tobytes())
