"""Bundle adjustment with known positions as priors, which removes the drift of long maps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pycolmap

MAX_WORSE = 1.1  # of the reprojection error: with right positions it stays as it was, nearly


def adjust_to_positions(
    model: pycolmap.Reconstruction,
    places: Mapping[int, tuple[np.ndarray, np.ndarray]],
    bundle: pycolmap.BundleAdjustmentOptions,
) -> bool:
    """Adjust a model that lies in the positions' frame. `places` are those of images by id, each with its sigma, (3,).

    Whether it was; if it does not solve, or the images then agree less with each other, the model stays as it is.
    """
    trial = pycolmap.Reconstruction(model)
    before = trial.compute_mean_reprojection_error()
    config = pycolmap.BundleAdjustmentConfig()
    for image_id in trial.reg_image_ids():
        config.add_image(image_id)
    options = pycolmap.PosePriorBundleAdjustmentOptions()
    options.alignment_ransac.random_seed = 0
    priors = []
    for image_id, (place, sigma) in places.items():
        prior = pycolmap.PosePrior()
        prior.position, prior.position_covariance = place, np.diag(sigma**2)
        prior.coordinate_system = pycolmap.PosePriorCoordinateSystem.CARTESIAN
        prior.corr_data_id = trial.image(image_id).data_id
        priors.append(prior)
    # wrong positions are not among them, and the model lies where they say: COLMAP shall not throw more of them out
    options.alignment_ransac.max_error = 2 * max(
        float(np.linalg.norm(trial.image(i).projection_center() - place)) for i, (place, _) in places.items()
    )
    adjuster = pycolmap.create_pose_prior_bundle_adjuster(bundle, options, config, priors, trial)
    summary = adjuster.solve()
    trial.update_point_3d_errors()
    after = trial.compute_mean_reprojection_error()
    if not summary.is_solution_usable() or not after <= MAX_WORSE * before:
        return False
    _take_over(model, trial)
    return True


def _take_over(model: pycolmap.Reconstruction, other: pycolmap.Reconstruction) -> None:
    """Cameras, poses and points of a copy."""
    for camera_id in model.cameras:
        model.camera(camera_id).params = other.camera(camera_id).params.tolist()
    for rig_id in model.rigs:
        for sensor_id, pose in other.rig(rig_id).non_ref_sensors.items():
            if pose is not None:
                model.rig(rig_id).set_sensor_from_rig(sensor_id, pose)
    for frame_id in model.reg_frame_ids():
        model.frame(frame_id).rig_from_world = other.frame(frame_id).rig_from_world
    for point_id in model.points3D:
        model.point3D(point_id).xyz = other.point3D(point_id).xyz
    model.update_point_3d_errors()
