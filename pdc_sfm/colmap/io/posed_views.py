"""The images of a model as plain arrays: where they were taken from, and which points they see."""

from __future__ import annotations

import dataclasses

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.point_lookup import NO_POINT, PointLookup
from pdc_sfm.pixels import Size, from_colmap


@dataclasses.dataclass(frozen=True)
class PosedView:
    """An image without distortion, in pixel indices: x ~ intrinsics (R X + t)."""

    name: str
    size: Size  # (width, height)
    intrinsics: np.ndarray  # (3, 3)
    cam_from_world: np.ndarray  # (3, 4)
    points: np.ndarray  # (N, 3) float64, those of the model that it shows
    point_ids: np.ndarray  # (N,) rising

    @property
    def center(self) -> np.ndarray:
        """(3,) in the world."""
        return -self.cam_from_world[:, :3].T @ self.cam_from_world[:, 3]


def posed_views(model: pycolmap.Reconstruction) -> list[PosedView]:
    """Of the registered images of a model of PINHOLE cameras, in the order in which COLMAP counts them."""
    lookup = PointLookup(model)
    found = []
    for image_id in model.reg_image_ids():
        image, ids = model.image(image_id), np.unique(lookup.point_ids(image_id))
        ids = ids[ids != NO_POINT]
        camera = model.camera(image.camera_id)
        intrinsics = np.asarray(camera.calibration_matrix()).copy()
        intrinsics[:2, 2] = from_colmap(intrinsics[:2, 2])
        pose = np.asarray(image.cam_from_world().matrix())
        found.append(PosedView(image.name, (camera.width, camera.height), intrinsics, pose, lookup.xyz(ids), ids))
    return found
