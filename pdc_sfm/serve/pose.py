"""A pose as it is answered, and what is told of a photograph's camera."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from pdc_sfm.client.answers import QueryCamera, QueryPose
from pdc_sfm.colmap.io.cameras import camera_of_exif
from pdc_sfm.colmap.io.frame import MapFrame
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.evidence import covariance_of
from pdc_sfm.colmap.localization.query import LocalizedQuery
from pdc_sfm.colmap.types import Camera
from pdc_sfm.serve.uploads import suffix_of, tells_focal_length


def pose_answer(item: LocalizedQuery, lookup: PointLookup, focal_sigma: float, frame: MapFrame | None) -> QueryPose:
    """The pose that holds, with what is known of its error; on the earth, if the map's frame has its origin there."""
    assert item.attempt is not None
    assert item.attempt.estimate is not None
    pose = item.attempt.estimate["cam_from_world"]
    covariance, position = covariance_of(item, lookup, focal_sigma), np.asarray(pose.inverse().translation)
    place = frame.geographic(position)[0].tolist() if frame is not None and frame.origin is not None else ()
    return QueryPose(
        np.asarray(pose.matrix()).tolist(),
        pose.rotation.quat[[3, 0, 1, 2]].tolist(),
        np.asarray(pose.translation).tolist(),
        position.tolist(),
        covariance.tolist(),
        float(np.sqrt(np.trace(covariance[3:, 3:]))),
        float(np.degrees(np.sqrt(np.trace(covariance[:3, :3])))),
        *place,
    )


def camera_answer(camera: Camera, source: str) -> QueryCamera:
    """Intrinsics, and where they are from."""
    return QueryCamera(camera.model_name, camera.width, camera.height, list(map(float, camera.params)), source)


def exif_camera(content: bytes) -> Camera | None:
    """The camera of a photograph that tells its focal length, as COLMAP reads it: of a file, whose name is ours."""
    if not tells_focal_length(content):
        return None
    with tempfile.NamedTemporaryFile(prefix="pdc-sfm-", suffix=suffix_of(content)) as file:
        file.write(content)
        file.flush()
        return camera_of_exif(Path(file.name))
