"""The intrinsics of a finished model: whether they can be, left what is known of them, or are told by the photographs at all."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Literal

import numpy as np
import pycolmap

from pdc_sfm.colmap.refinement.photometric import adjust, median_error

Cameras = Mapping[int, pycolmap.Camera]  # by id
Adjusted = Literal["all", "focal lengths", "nothing"]  # of the intrinsics
# By which a focal length that EXIF or the user tells may be adjusted: EXIF rounds by 4 %, a stabilized video is cropped by 20 %.
MAX_DRIFT = 1.25
# Focal lengths so many times as long and as short are held for comparison, and the error of a middle point must then be so many
# times as large, for photographs to tell them: 1.43 and more for cameras that moved sideways, 1.17 and less for those that hardly
# moved or moved straight ahead (tests/colmap/test_doubtful_models.py); this is the geometric mean.
COMPARED, WORSE = 1.5, 1.3


def used_cameras(model: pycolmap.Reconstruction) -> list[int]:
    """Ids of the cameras of registered images, in order."""
    return sorted({model.image(image_id).camera_id for image_id in model.reg_image_ids()})


def runaway_cameras(model: pycolmap.Reconstruction, limits: tuple[float, float, float]) -> list[pycolmap.Camera]:
    """Cameras of registered images with intrinsics outside the limits, by id."""
    return [model.camera(i) for i in used_cameras(model) if model.camera(i).has_bogus_params(*limits)]


def drifted_cameras(model: pycolmap.Reconstruction, cameras: Cameras) -> list[pycolmap.Camera]:
    """Cameras of registered images with a focal length far off what was known of it, the farthest first."""
    known = (i for i in used_cameras(model) if cameras[i].has_prior_focal_length)
    off = {i: focal_drift(model.camera(i), cameras[i]) for i in known}
    return [model.camera(i) for i in sorted(off, key=lambda i: -off[i]) if off[i] > MAX_DRIFT]


def focal_drift(camera: pycolmap.Camera, before: pycolmap.Camera) -> float:
    """The larger of two focal lengths by the smaller."""
    ratio = camera.mean_focal_length() / before.mean_focal_length()
    return max(ratio, 1 / ratio)


def adjusted(model: pycolmap.Reconstruction, cameras: Cameras) -> Adjusted:
    """What was adjusted of the intrinsics of a model, given those before mapping."""
    now = [model.camera(i) for i in used_cameras(model)]
    if all(np.array_equal(camera.params, cameras[camera.camera_id].params) for camera in now):
        return "nothing"
    distortion = [(_distortion(camera), _distortion(cameras[camera.camera_id])) for camera in now]
    can_be_kept = any(len(params) for params, _ in distortion)
    return "focal lengths" if can_be_kept and all(np.array_equal(*both) for both in distortion) else "all"


def _distortion(camera: pycolmap.Camera) -> np.ndarray:
    return np.asarray(camera.params)[list(camera.extra_params_idxs())]


def tells_focal_lengths(model: pycolmap.Reconstruction, bundle: pycolmap.BundleAdjustmentOptions) -> bool:
    """Whether a model with other focal lengths, all the rest adjusted to them, fits the photographs clearly worse.

    Photographs of a plane, from one place or straight ahead fit nearly as well whatever the focal length.
    """
    held = copy.deepcopy(bundle)
    held.refine_focal_length = held.refine_extra_params = held.refine_principal_point = False
    usual = _middle_error(model, 1.0, held)
    return all(_middle_error(model, factor, held) > WORSE * usual for factor in (1 / COMPARED, COMPARED))


def _middle_error(model: pycolmap.Reconstruction, factor: float, held: pycolmap.BundleAdjustmentOptions) -> float:
    """Pixels by which a middle point is off in a model adjusted to focal lengths that are so many times as long."""
    changed = pycolmap.Reconstruction(model)
    for camera in changed.cameras.values():
        params = np.array(camera.params)
        params[list(camera.focal_length_idxs())] *= factor
        camera.params = params
    adjust(changed, held)
    return median_error(changed)
