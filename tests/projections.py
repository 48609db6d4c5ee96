"""A scene whose matches are exact: 3D points projected into known cameras, written as hloc files and a COLMAP model.

Made for the tests of mapping and localization: whatever they lose is lost by the code under test, not by a matcher.
"""

import dataclasses
import itertools
from pathlib import Path

import cv2
import h5py
import numpy as np
import pycolmap

from pdc_sfm.store.pair_lists import read_pairs


@dataclasses.dataclass
class Scene:
    """Cameras on an arc around a cloud of points; `keypoints` are pixel indices as in hloc files."""

    cameras: dict[str, pycolmap.Camera]
    poses: dict[str, np.ndarray]  # cam_from_world (3, 4)
    points: np.ndarray  # (N, 3)
    visible: dict[str, np.ndarray]  # name -> indices of the points it sees, the order of its keypoints
    keypoints: dict[str, np.ndarray]

    @property
    def names(self) -> list[str]:
        return list(self.poses)

    def matches(self, first: str, second: str) -> np.ndarray:
        """(M, 2) indices of the keypoints that show the same point."""
        _, index0, index1 = np.intersect1d(self.visible[first], self.visible[second], return_indices=True)
        return np.stack([index0, index1], axis=1)

    def pairs(self, names=None) -> list[tuple[str, str]]:
        return list(itertools.combinations(names or self.names, 2))


def look_at(center: np.ndarray, target: np.ndarray) -> np.ndarray:
    """cam_from_world of a camera at `center` that looks at `target`; y points down."""
    forward = (target - center) / np.linalg.norm(target - center)
    right = np.cross([0.0, 1.0, 0.0], forward)
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    return np.c_[rotation, -rotation @ center]


def make_scene(
    names, points=300, seed=0, size=(640, 480), model="SIMPLE_RADIAL", params=(500, 320, 240, 0.02), vary=20
) -> Scene:
    """Every camera has a focal length within `vary` of `params`, and sees most of the points."""
    rng = np.random.default_rng(seed)
    cloud = np.c_[rng.uniform(-2.5, 2.5, (points, 2)), rng.uniform(4, 8, points)]
    cameras, poses, visible, keypoints = {}, {}, {}, {}
    for angle, name in zip(np.linspace(-0.6, 0.6, len(names)), names):
        own = np.array(params, float)
        own[0] += rng.uniform(-vary, vary)
        camera = pycolmap.Camera(model=model, width=size[0], height=size[1], params=own)
        center = np.array([4 * np.sin(angle), rng.uniform(-0.5, 0.5), 6 - 6.5 * np.cos(angle)])
        pose = look_at(center, np.array([0, 0, 6.0]))
        rays = cloud @ pose[:, :3].T + pose[:, 3]
        pixels = np.asarray(camera.img_from_cam(rays))
        seen = np.flatnonzero((pixels > 0).all(axis=1) & (pixels < size).all(axis=1))
        seen = rng.permutation(seen)
        cameras[name], poses[name], visible[name] = camera, pose, seen
        keypoints[name] = (pixels[seen] - 0.5).astype(np.float32)
    return Scene(cameras, poses, cloud, visible, keypoints)


def write_images(scene: Scene, folder: Path, names=None) -> Path:
    """Plain images of the right size: left half red, right half blue."""
    for name in names or scene.names:
        camera = scene.cameras[name]
        image = np.zeros((camera.height, camera.width, 3), np.uint8)
        image[:, : camera.width // 2, 2] = 200
        image[:, camera.width // 2 :, 0] = 200
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), image)
    return folder


def write_features(scene: Scene, path: Path, names=None, uncertainty=None) -> Path:
    """An hloc feature file."""
    with h5py.File(path, "w") as file:
        for name in names or scene.names:
            group = file.create_group(name)
            dataset = group.create_dataset("keypoints", data=scene.keypoints[name])
            if uncertainty is not None:
                dataset.attrs["uncertainty"] = uncertainty
            group["scores"] = np.ones(len(scene.keypoints[name]), np.float32)
            group["image_size"] = np.array([scene.cameras[name].width, scene.cameras[name].height])
    return path


def write_matches(scene: Scene, path: Path, pairs, wrong=0.0, seed=0) -> Path:
    """An hloc match file. A share `wrong` of the matches is random, with half the score of the others."""
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        for first, second in pairs:
            matches0 = np.full(len(scene.keypoints[first]), -1, np.int32)
            scores0 = np.zeros(len(matches0), np.float16)
            matches = scene.matches(first, second)
            matches0[matches[:, 0]], scores0[matches[:, 0]] = matches[:, 1], 0.8
            bad = rng.random(len(matches0)) < wrong
            matches0[bad], scores0[bad] = rng.integers(0, len(scene.keypoints[second]), bad.sum()), 0.4
            group = file.create_group(f"{first.replace('/', '-')}/{second.replace('/', '-')}")
            group["matches0"], group["matching_scores0"] = matches0, scores0
    return path


def write_pairs(path: Path, pairs) -> Path:
    """A pair list."""
    path.write_text("".join(f"{first} {second}\n" for first, second in pairs))
    return path


def write_model(scene: Scene, folder: Path, names=None) -> Path:
    """A COLMAP model of the true poses and intrinsics, without points."""
    model = pycolmap.Reconstruction()
    for image_id, name in enumerate(names or scene.names, start=1):
        camera = pycolmap.Camera(scene.cameras[name].todict())
        camera.camera_id = image_id
        model.add_camera_with_trivial_rig(camera)
        image = pycolmap.Image(name=name, camera_id=image_id, image_id=image_id)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(scene.poses[name]))
    folder.mkdir(parents=True, exist_ok=True)
    model.write_binary(folder)
    return folder


def write_queries(scene: Scene, path: Path, names) -> Path:
    """A query list with intrinsics."""
    lines = []
    for name in names:
        camera = scene.cameras[name]
        params = " ".join(f"{p:.17g}" for p in camera.params)
        lines.append(f"{name} {camera.model.name} {camera.width} {camera.height} {params}\n")
    path.write_text("# name model width height parameters\n" + "".join(lines))
    return path


def exact_matcher(scene):
    """What matches a list of pairs without a network: the scene's own points."""

    def match(images, pairs, features, matches, fixed=None):
        listed = read_pairs(pairs)
        write_features(scene, features, sorted({name for pair in listed for name in pair}))
        write_matches(scene, matches, listed)

    return match
