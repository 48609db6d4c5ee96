"""A model of images whose poses and intrinsics are known, without points."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.database_images import DatabaseImage
from pdc_sfm.errors import FormatError


def posed_model(
    poses: Mapping[str, np.ndarray],
    cameras: Mapping[str, pycolmap.Camera],
    ids: Mapping[str, DatabaseImage] | None = None,
) -> pycolmap.Reconstruction:
    """Of images with cam_from_world (3, 4); under the ids of a database, or numbered in their order."""
    model = pycolmap.Reconstruction()
    for number, (name, pose) in enumerate(poses.items(), start=1):
        own = DatabaseImage(number, number) if ids is None else ids[name]
        _add_camera(model, cameras[name], own.camera_id, name)
        image = pycolmap.Image(name=name, camera_id=own.camera_id, image_id=own.image_id)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(np.ascontiguousarray(pose)))
    return model


def _add_camera(model: pycolmap.Reconstruction, camera: pycolmap.Camera, camera_id: int, name: str) -> None:
    """Images of a sequence share one camera."""
    if not model.exists_camera(camera_id):
        own = pycolmap.Camera(camera.todict())
        own.camera_id = camera_id
        model.add_camera_with_trivial_rig(own)
        return
    known = model.camera(camera_id)
    if (known.model, known.width, known.height) != (camera.model, camera.width, camera.height):
        raise FormatError(f"{name} shares camera {camera_id} in the database, but has another kind: other version?")
