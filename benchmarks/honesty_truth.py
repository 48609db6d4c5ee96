"""Which images of a map stand where they truly stood."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pycolmap
from honesty_maps import Map, Source
from scipy.spatial.transform import Rotation

from pdc_sfm.evaluation.measures.poses import camera_center, rotation_angle

DEGREES = 5.0
# Of the depth of what an image shows: 9 degrees, seen from there. A wing of a court that looks like the next is laid over it
# with every rotation right (court 6203: .2 to .47); cameras of maps without such a mistake were off by .05 at most.
MISPLACED = 0.15


def median_depths(model: pycolmap.Reconstruction) -> dict[str, float]:
    """How far off that lies what each image shows, in the map's unit."""
    depths = {}
    for image in (model.image(image_id) for image_id in model.reg_image_ids()):
        points = [model.point3D(point.point3D_id).xyz for point in image.points2D if point.has_point3D()]
        depths[image.name] = float(np.median((image.cam_from_world() * np.array(points))[:, 2])) if points else np.inf
    return depths


def count_right(poses: dict[str, np.ndarray], depths: dict[str, float], one: Map) -> dict[str, Any]:
    """How many images are right, and which are not, by the part of the map that agrees best with one of its worlds."""
    best: dict[str, float] = {}
    for source in one.sources:
        names = [name for name in source.poses if name in poses]
        if names:
            off = _turntable(poses, source, names) if source.rotations_only else _cameras(poses, depths, source, names)
            best = max(best, off, key=lambda errors: sum(error <= DEGREES for error in errors.values()))
    wrong = {name: best.get(name, 180.0) for name in poses if best.get(name, 180.0) > DEGREES}
    right = [best[name] for name in poses if name not in wrong]
    return {"right": len(right), "wrong": wrong, "median_degrees": float(np.median(list(best.values())))}


def _cameras(
    poses: dict[str, np.ndarray], depths: dict[str, float], source: Source, names: list[str]
) -> dict[str, float]:
    """Degrees of each image off its truth; 90 at least for those of which only the position is wrong."""
    estimated, true = (np.stack([some[name] for name in names]) for some in (poses, source.poses))
    best = np.full(len(names), 180.0)
    for number in range(len(names)):
        between = estimated[number, :, :3].T @ true[number, :, :3]
        off = rotation_angle(estimated[..., :3] @ between, true[..., :3])
        best = off if (off <= DEGREES).sum() > (best <= DEGREES).sum() else best
    near = best <= DEGREES
    if near.sum() > 2:
        between = Rotation.from_matrix(np.swapaxes(estimated[near, :, :3], 1, 2) @ true[near, :, :3]).mean().as_matrix()
        best = rotation_angle(estimated[..., :3] @ between, true[..., :3])
        deep = np.array([depths[name] for name in names])
        far = _misplaced(camera_center(estimated) @ between, camera_center(true), best <= DEGREES, deep)
        best = np.where(far, np.maximum(best, 90.0), best)
    return dict(zip(names, best.tolist()))


def _misplaced(centers: np.ndarray, true: np.ndarray, near: np.ndarray, depths: np.ndarray) -> np.ndarray:
    """Cameras that stand far off, by the depth of what they show, once scale and shift are those most of the `near` agree on."""
    extent = np.linalg.norm(true[near, None] - true[None, near], axis=-1).max()
    if extent < 1e-9:
        return np.zeros(len(true), bool)
    best = np.full(len(true), np.inf)
    for a, b in itertools.combinations(np.flatnonzero(near).tolist(), 2):
        length = np.linalg.norm(centers[a] - centers[b])
        if length < 1e-12 or np.linalg.norm(true[a] - true[b]) < 0.05 * extent:
            continue
        scale = np.linalg.norm(true[a] - true[b]) / length
        middle, true_middle = (centers[a] + centers[b]) / 2, (true[a] + true[b]) / 2
        off = np.linalg.norm(scale * (centers - middle) + true_middle - true, axis=1) / (scale * depths)
        best = min(best, off, key=lambda off: (-(off[near] <= MISPLACED).sum(), np.median(off[near])))
    return best > MISPLACED


def _turntable(poses: dict[str, np.ndarray], source: Source, names: list[str]) -> dict[str, float]:
    """The axis is known from two images that turned by the right angle; the others must have turned about the same."""
    rotations = np.stack([poses[name][:, :3] for name in names])
    angles = np.array([np.arctan2(source.poses[name][1, 0], source.poses[name][0, 0]) for name in names])
    best = np.full(len(names), 180.0)
    for a, b in itertools.permutations(range(len(names)), 2):
        turn = (angles[b] - angles[a] + np.pi) % (2 * np.pi) - np.pi
        vector = Rotation.from_matrix(rotations[b] @ rotations[a].T).as_rotvec()
        length = np.linalg.norm(vector)
        if not 0.3 < turn < 2.8 or abs(np.degrees(length - turn)) > DEGREES:
            continue
        expected = Rotation.from_rotvec(np.outer(angles - angles[a], vector / length)).as_matrix() @ rotations[a]
        off = rotation_angle(rotations, expected)
        best = off if (off <= DEGREES).sum() > (best <= DEGREES).sum() else best
    return dict(zip(names, best.tolist()))
