"""nerfstudio: `transforms.json` with the camera of every image, and an initial cloud for splatfacto.

World coordinates stay the map's (`applied_transform` is the identity). A camera looks along -z with y up (OpenGL), where
COLMAP's looks along z with y down. Intrinsics are COLMAP's: the center of the first pixel is (0.5, 0.5) in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pdc_sfm.colmap.io.cameras import camera_parameters
from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers, write_ply
from pdc_sfm.colmap.types import Camera
from pdc_sfm.errors import FormatError
from pdc_sfm.export.formats import Export, register
from pdc_sfm.run_folder import write_json

PERSPECTIVE = ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV")
FISHEYE = ("SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE", "OPENCV_FISHEYE")  # the same, with fewer or more terms
NAMES = {"f": ("fl_x", "fl_y"), "fx": ("fl_x",), "fy": ("fl_y",), "k": ("k1",)}
CLOUD = "sparse_pc.ply"


def _holds(camera: Camera) -> bool:
    return camera.model_name in (*PERSPECTIVE, *FISHEYE)


@register("nerfstudio", images="images", holds=_holds)
def write(export: Export) -> str:
    """transforms.json and sparse_pc.ply."""
    views = list(export.views())
    fisheye = {camera.model_name in FISHEYE for _, camera, _ in views}
    if len(fisheye) > 1:
        raise FormatError("nerfstudio wants all cameras fisheye or none, and the map has both: use --to splats")
    frames = [
        {"file_path": f"images/{name}", "transform_matrix": opengl_pose(pose).tolist(), **_intrinsics(camera)}
        for name, camera, pose in views
    ]
    points, colors = model_points(export.model)
    keep = remove_outliers(points)
    write_ply(export.folder / CLOUD, points[keep], colors[keep])
    content: dict[str, Any] = {"camera_model": "OPENCV_FISHEYE" if fisheye.pop() else "OPENCV"}
    write_json(export.folder / "transforms.json", {**content, "ply_file_path": CLOUD, "frames": frames})
    return f"{len(frames)} images, {int(keep.sum()):,} points"


def opengl_pose(cam_from_world: np.ndarray) -> np.ndarray:
    """cam_from_world (3, 4) -> world_from_cam (4, 4) of a camera that looks along -z with y up."""
    rotation = cam_from_world[:, :3].T
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation * [1, -1, -1], -rotation @ cam_from_world[:, 3]
    return pose


def _intrinsics(camera: Camera) -> dict[str, Any]:
    found: dict[str, Any] = {"w": int(camera.width), "h": int(camera.height)}
    for name, value in zip(camera_parameters(camera.model_name), camera.params):
        found |= dict.fromkeys(NAMES.get(name, (name,)), float(value))
    missing = ("k1", "k2", "k3", "k4") if camera.model_name in FISHEYE else ("k1", "k2", "p1", "p2")
    return dict.fromkeys(missing, 0.0) | found
