"""How the cameras of a rig stand to each other, from a map that was made without knowing that they are fixed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.models import ReconstructionError
from pdc_sfm.colmap.io.rigs import CameraRig, RigCamera, Rigs, give_poses

SPREAD = 3.0  # times the median angle from the middle: frames farther off are wrong ones


def estimate_rigs(model: pycolmap.Reconstruction, rigs: Rigs) -> Rigs:
    """Rigs with the poses that a model of their images says; an error where it does not say all of them.

    Where a rig has cameras whose places are known, the others are given in the same unit.
    """
    poses = {model.image(i).name: model.image(i).cam_from_world() for i in model.reg_image_ids()}
    found: dict[str, pycolmap.Rigid3d] = {}
    for rig in rigs:
        scale = _scale(rig, poses)
        for camera in rig.cameras:
            if camera.cam_from_rig is not None:
                continue
            turns = _relative_poses(rig, camera, poses)
            if not turns:
                raise ReconstructionError(
                    f"where {camera.prefix} stands in its rig cannot be estimated: without the rig, no image of it was "
                    "registered together with one of the same moment of the rig's reference; give its cam_from_rig"
                )
            pose = _middle(turns)
            found[camera.prefix] = pycolmap.Rigid3d(pose.rotation, scale * np.asarray(pose.translation))
    return give_poses(rigs, found)


def rigs_of(model: pycolmap.Reconstruction, rigs: Rigs, in_metres: bool) -> Rigs:
    """The rigs as a finished model has them, with intrinsics; `in_metres`: the model is."""
    cameras: dict[str, RigCamera] = {}
    for image in map(model.image, model.reg_image_ids()):
        for rig in rigs:
            camera = rig.camera_of(image.name)
            if camera is not None and camera.prefix not in cameras:
                own = model.camera(image.camera_id)
                sensors = model.rig(model.frame(image.frame_id).rig_id)
                pose = camera.cam_from_rig if camera.is_reference else sensors.sensor_from_rig(own.sensor_id)
                params = tuple(float(value) for value in own.params)
                cameras[camera.prefix] = RigCamera(camera.prefix, camera.is_reference, pose, own.model_name, params)
    found = [CameraRig(tuple(cameras.get(c.prefix, c) for c in rig.cameras)) for rig in rigs]
    return tuple(dataclasses.replace(rig, in_metres=in_metres or not rig.has_size) for rig in found)


def rig_remarks(model: pycolmap.Reconstruction, given: Rigs, used: Rigs) -> tuple[str, ...]:
    """Where the cameras stand whose poses in a rig were not given."""
    lines = []
    for rig, found in zip(given, rigs_of(model, used, in_metres=False)):
        for camera, own in zip(rig.cameras, found.cameras):
            if camera.cam_from_rig is None and own.cam_from_rig is not None:
                x, y, z = own.cam_from_rig.inverse().translation
                angle = np.degrees(own.cam_from_rig.rotation.angle())
                lines.append(
                    f"rig: {own.prefix} was found to stand at {x:.3g} {y:.3g} {z:.3g} of its rig, turned by {angle:.2f} degrees "
                    "(rig.json)"
                )
    return tuple(lines)


def _relative_poses(rig: CameraRig, camera: RigCamera, poses: dict[str, pycolmap.Rigid3d]) -> list[pycolmap.Rigid3d]:
    """cam_from_rig of every moment of which the model has this camera and the reference."""
    found = []
    for images in rig.frames(poses).values():
        by_camera = {own.prefix: poses[name] for name, own in images.items()}
        reference = next((by_camera[own.prefix] for own in images.values() if own.is_reference), None)
        if reference is not None and camera.prefix in by_camera:
            found.append(by_camera[camera.prefix] * reference.inverse())
    return found


def _middle(poses: list[pycolmap.Rigid3d]) -> pycolmap.Rigid3d:
    """The mean rotation and median translation of those near the one that is nearest to all."""
    from scipy.spatial.transform import Rotation

    rotations = Rotation.from_quat([pose.rotation.quat for pose in poses])
    angles = np.stack([(rotations * one.inv()).magnitude() for one in rotations])
    central = angles[angles.sum(1).argmin()]
    near = central <= max(SPREAD * float(np.median(central)), 1e-9)
    translation = np.median([pose.translation for pose, kept in zip(poses, near) if kept], axis=0)
    return pycolmap.Rigid3d(pycolmap.Rotation3d(rotations[near].mean().as_quat()), translation)


def _scale(rig: CameraRig, poses: dict[str, pycolmap.Rigid3d]) -> float:
    """Units of the rig's known places by units of the model; 1 if it has none."""
    ratios = []
    for camera in rig.cameras:
        known = 0.0 if camera.cam_from_rig is None else float(np.linalg.norm(camera.cam_from_rig.translation))
        turns = _relative_poses(rig, camera, poses) if known > 0 else []
        if turns:
            length = float(np.linalg.norm(_middle(turns).translation))
            ratios += [known / length] if length > 0 else []
    return float(np.median(ratios)) if ratios else 1.0
