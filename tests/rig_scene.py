"""Cameras fixed to each other on a walk around a cloud of points, with exact or noisy keypoints (`projections.Scene`)."""

import numpy as np
import pycolmap
from projections import Scene, look_at

PREFIXES = ("left/", "middle/", "right/")
SIZE = (640, 480)


def cam_from_rig(prefix):
    """(3, 4): cameras half a metre apart, those at the sides turned by 15 degrees; the left one is the reference."""
    number = PREFIXES.index(prefix)
    angle = np.radians(15.0 * number)
    rotation = np.array([[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]])
    return np.c_[rotation, -rotation @ np.array([0.5 * number, 0.02 * number, 0.1 * number])]


def compose(first, second):
    """first after second, of (3, 4) poses."""
    return np.c_[first[:, :3] @ second[:, :3], first[:, :3] @ second[:, 3] + first[:, 3]]


def rig_scene(frames=6, points=800, noise=0.0, seed=0, prefixes=PREFIXES, start=0):
    """A scene of frames `left/0.png`, `right/0.png` and so on; cameras share intrinsics that are not the usual guess."""
    rng = np.random.default_rng(seed)
    cloud = np.c_[rng.uniform(-6, 6, points), rng.uniform(-2, 2, points), rng.uniform(5, 10, points)]
    cameras, poses, visible, keypoints = {}, {}, {}, {}
    for frame in range(start, start + frames):
        angle = -0.5 + 0.2 * (frame % 6)
        center = np.array([5 * np.sin(angle), rng.uniform(-0.3, 0.3), 7 - 7 * np.cos(angle)])
        rig_from_world = look_at(center, np.array([-1.5, 0, 7.0]))
        for prefix in prefixes:
            name = f"{prefix}{frame}.png"
            camera = pycolmap.Camera(
                model="SIMPLE_RADIAL",
                width=SIZE[0],
                height=SIZE[1],
                params=[560.0 + 10 * PREFIXES.index(prefix), 320, 240, 0.01],
            )
            pose = compose(cam_from_rig(prefix), rig_from_world)
            rays = cloud @ pose[:, :3].T + pose[:, 3]
            pixels = np.asarray(camera.img_from_cam(rays))
            inside = (rays[:, 2] > 0.1) & (pixels > 0).all(axis=1) & (pixels < SIZE).all(axis=1)
            seen = rng.permutation(np.flatnonzero(inside))
            cameras[name], poses[name], visible[name] = camera, pose, seen
            keypoints[name] = (pixels[seen] - 0.5 + rng.normal(0, noise, (len(seen), 2))).astype(np.float32)
    return Scene(cameras, poses, cloud, visible, keypoints)


def rig_entry(prefix, known=True, intrinsics=False):
    """A camera of a rig file."""
    entry = {"image_prefix": prefix}
    pose = pycolmap.Rigid3d(cam_from_rig(prefix))
    if prefix == PREFIXES[0]:
        entry["ref_sensor"] = True
    elif known:
        entry["cam_from_rig_rotation"] = pose.rotation.quat[[3, 0, 1, 2]].tolist()
        entry["cam_from_rig_translation"] = np.asarray(pose.translation).tolist()
    if intrinsics:
        entry |= {
            "camera_model_name": "SIMPLE_RADIAL",
            "camera_params": [560.0 + 10 * PREFIXES.index(prefix), 320, 240, 0.01],
        }
    return entry
