"""Photometric refinement of a model: observations move to where their patches agree, then cameras are adjusted.

Matches of a network are right to about half a pixel, and neighbors share their errors, so that bundle adjustment cannot
average them away. But they are near enough for the images to tell the rest. Each point carries a small square of surface;
its best image shows how it looks; in every other image the square is laid over what is seen there. The place of the match
is the prior, so nothing moves where there is no texture. Then all is adjusted with a robust loss, and once more.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import intrinsic_limits
from pdc_sfm.colmap.options import thread_count
from pdc_sfm.colmap.refinement.observations import NEIGHBORS, Observations, Surfaces, surfaces
from pdc_sfm.colmap.refinement.patches import GRID, align_patches, sample
from pdc_sfm.progress import progress

ROUNDS = 2  # of moving observations and adjusting
BLOCK = 50_000  # points at a time
OPEN_IMAGES = 16  # gray, in memory
MIN_NCC = 0.7  # correlation that a new place must reach
FARTHEST = 3.0  # pixels that an observation may move, of images shrunk until errors are about half a pixel
USUAL_ERROR = 0.5  # pixels, of observations: images are shrunk until theirs is this
LOSS_SCALE = USUAL_ERROR  # of the loss: what is farther off counts less
FEWEST = 50  # observations that look alike in every image, for cameras to be adjusted by those alone
MAX_ERROR, MIN_ANGLE = 4.0, 1.5  # pixels and degrees, COLMAP's own: what remains outside is removed


@dataclasses.dataclass(frozen=True)
class KeypointRefinement:
    """What was done to a model."""

    observations: int
    moved: int
    median_move: float  # pixels


def refine_keypoints(
    model: pycolmap.Reconstruction, images: Path, options: pycolmap.BundleAdjustmentOptions, rounds: int = ROUNDS
) -> KeypointRefinement:
    """Move the observations of a model (its `points2D`) by what the images show, and adjust it. Works in place.

    `options` say what bundle adjustment may change, and with how many threads.
    """
    if model.num_points3D() <= NEIGHBORS:
        return KeypointRefinement(0, 0, 0.0)
    before = Observations.of(model)
    for _ in range(rounds):
        last, error = pycolmap.Reconstruction(model), median_error(model)
        seen, alike = _move(model, images, options.ceres.solver_options.num_threads)
        if not alike.any():
            break
        _adjust_by(model, seen, alike, options)
        if _ran_away(model, error):
            _restore(model, last)
            break
    moves = np.linalg.norm(Observations.of(model).places - before.places, axis=1)
    moved = moves[moves > 0]
    if not len(moved):
        return KeypointRefinement(len(moves), 0, 0.0)
    pycolmap.ObservationManager(model).filter_all_points3D(MAX_ERROR * _shrink(model), MIN_ANGLE)
    model.update_point_3d_errors()
    return KeypointRefinement(len(moves), len(moved), float(np.median(moved)))


def _ran_away(model: pycolmap.Reconstruction, error: float) -> bool:
    """Whether adjusting made a model worse, from that median error, as where little holds its cameras.

    A good adjustment lowers errors; twice as much, and a tenth of a pixel for a model without any, is no noise. Single
    points far off are removed in the end.
    """
    return not median_error(model) <= 2 * error + 0.1


def _restore(model: pycolmap.Reconstruction, last: pycolmap.Reconstruction) -> None:
    """Cameras, points and observations as they were."""
    _take_poses(model, last)
    for camera_id, camera in last.cameras.items():
        model.camera(camera_id).params = camera.params
    for point_id, point in last.points3D.items():
        model.point3D(point_id).xyz = point.xyz
    for image_id in last.reg_image_ids():
        points2D = model.image(image_id).points2D
        for index, point2D in enumerate(last.image(image_id).points2D):
            if point2D.has_point3D():
                points2D[index].xy = point2D.xy
    model.update_point_3d_errors()


def median_error(model: pycolmap.Reconstruction) -> float:
    """Pixels, of a middle point."""
    return float(np.median([point.error for point in model.points3D.values()]))


def _adjust_by(model: pycolmap.Reconstruction, seen: Observations, alike: np.ndarray, options: Any) -> None:
    """Cameras from the observations that look alike, then all points with these cameras.

    What does not look alike may be right too, but only as exactly as the network knew it.
    """
    if not options.refine_rig_from_world:
        return adjust(model, options)
    sure = pycolmap.Reconstruction(model)
    for image_id, index in zip(seen.image_id[~alike].tolist(), seen.index[~alike].tolist()):
        if sure.image(image_id).points2D[index].has_point3D():  # its point may be gone already
            sure.delete_observation(image_id, index)
    if min(sure.image(image_id).num_points3D for image_id in sure.reg_image_ids()) < FEWEST:
        sure = model
    _adjust_sanely(sure, options)
    if sure is model:
        return
    _take_poses(model, sure)
    for camera_id, camera in sure.cameras.items():
        model.camera(camera_id).params = camera.params
    adjust(model, points_only(options))


def _adjust_sanely(model: pycolmap.Reconstruction, options: pycolmap.BundleAdjustmentOptions) -> None:
    """Adjust, with the intrinsics as they were if they would run away, as they do where little holds them."""
    before = pycolmap.Reconstruction(model)
    limits = intrinsic_limits(before.cameras.values())
    adjust(model, options)
    if not any(camera.has_bogus_params(*limits) for camera in model.cameras.values()):
        return
    for camera_id, camera in before.cameras.items():
        model.camera(camera_id).params = camera.params
    _take_poses(model, before)
    fixed = copy.deepcopy(options)
    fixed.refine_focal_length = fixed.refine_extra_params = fixed.refine_principal_point = False
    adjust(model, fixed)


def _take_poses(model: pycolmap.Reconstruction, other: pycolmap.Reconstruction) -> None:
    for frame_id in model.reg_frame_ids():
        model.frame(frame_id).rig_from_world = other.frame(frame_id).rig_from_world


def points_only(options: pycolmap.BundleAdjustmentOptions) -> pycolmap.BundleAdjustmentOptions:
    """The same options with all cameras fixed."""
    chosen = copy.deepcopy(options)
    chosen.refine_rig_from_world = chosen.refine_sensor_from_rig = False
    chosen.refine_focal_length = chosen.refine_extra_params = chosen.refine_principal_point = False
    return chosen


def adjust(model: pycolmap.Reconstruction, options: pycolmap.BundleAdjustmentOptions) -> None:
    """Bundle adjustment in which observations far off count little."""
    options.print_summary = False
    options.ceres.loss_function_type = pycolmap.LossFunctionType.CAUCHY
    options.ceres.loss_function_scale = LOSS_SCALE * _shrink(model)
    config = pycolmap.BundleAdjustmentConfig()
    for image_id in model.reg_image_ids():
        config.add_image(image_id)
    if options.refine_rig_from_world:
        config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    pycolmap.create_default_bundle_adjuster(options, config, model).solve()
    model.update_point_3d_errors()


def _shrink(model: pycolmap.Reconstruction) -> float:
    """How much smaller the images must be for the usual error to be half a pixel."""
    return max(1.0, median_error(model) / USUAL_ERROR)


def _move(model: pycolmap.Reconstruction, images: Path, threads: int) -> tuple[Observations, np.ndarray]:
    """Lay every observation over its point's best one. Returns those before, and which look alike (O,)."""
    seen = Observations.of(model)
    threads = thread_count(threads)
    squares, shrink = surfaces(model, seen, threads), _shrink(model)
    read = functools.lru_cache(OPEN_IMAGES)(lambda image_id: _gray(images / model.image(image_id).name, shrink))
    order = np.argsort(seen.image_id[squares.best], kind="stable")  # blocks of points seen by few images
    block_of = np.empty(len(order), np.int64)
    block_of[order] = np.arange(len(order)) // BLOCK
    rows_of_block = np.argsort(block_of[seen.point], kind="stable")
    ends = np.cumsum(np.bincount(block_of[seen.point]))
    blocks = progress(np.split(rows_of_block, ends[:-1]), "refining keypoints", "block")
    alike = np.zeros(len(seen.point), bool)
    with ThreadPoolExecutor(threads, "refine") as pool:
        for rows in blocks:
            _move_block(model, seen, squares, rows, read, alike, pool)
    alike[squares.best[seen.point[alike]]] = True
    return seen, alike


def _move_block(
    model: pycolmap.Reconstruction,
    seen: Observations,
    squares: Surfaces,
    rows: np.ndarray,
    read: Callable[[int], tuple[np.ndarray, np.ndarray]],
    alike: np.ndarray,
    pool: ThreadPoolExecutor,
) -> None:
    """Move the observations `rows`, all those of some points, and mark the moved in `alike`.

    Images are independent of each other: each is a task for the threads, which write to different elements.
    """
    points, local = np.unique(seen.point[rows], return_inverse=True)
    best = squares.best[points]
    templates, known = np.empty((len(points), len(GRID)), np.float32), np.zeros(len(points), bool)

    def take_templates(image_id: int) -> None:
        mine = np.flatnonzero(seen.image_id[best] == image_id)
        steps, known[mine] = _project_steps(model, image_id, seen.xyz[points[mine]], squares.steps[points[mine]])
        gray, scale = read(image_id)
        templates[mine] = sample(gray, seen.places[best[mine]] * scale, steps)

    def move(image_id: int) -> None:
        mine = np.flatnonzero(others & (seen.image_id[rows] == image_id))
        if not len(mine):
            return
        which = rows[mine]
        steps, shown = _project_steps(model, image_id, seen.xyz[seen.point[which]], squares.steps[seen.point[which]])
        gray, scale = read(image_id)
        old = seen.places[which] * scale
        new, correlation = align_patches(gray, old, steps, templates[local[mine]])
        good = (correlation > MIN_NCC) & (np.linalg.norm(new - old, axis=1) < FARTHEST) & shown & known[local[mine]]
        points2D = model.image(image_id).points2D
        for index, place in zip(seen.index[which[good]].tolist(), new[good] / scale):
            points2D[index].xy = place
        alike[which[good]] = True

    others = squares.best[seen.point[rows]] != rows
    _each(pool, take_templates, np.unique(seen.image_id[best]).tolist())
    _each(pool, move, np.unique(seen.image_id[rows]).tolist())


def _each(pool: ThreadPoolExecutor, call: Callable[[int], None], image_ids: Iterable[int]) -> None:
    """Call it for every image; an error of any is raised here."""
    for _ in pool.map(call, image_ids):
        pass


def _project_steps(
    model: pycolmap.Reconstruction, image_id: int, xyz: np.ndarray, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Steps (n, 2, 3) along the surface at points (n, 3), as pixels (n, 2, 2) of an image; in it shrunk they are as long.

    And whether the image can show them (n,): what lies partly behind the camera has no place in it.
    """
    image = model.image(image_id)
    pose = np.asarray(image.cam_from_world().matrix())
    ends = np.stack([xyz[:, None] - steps, xyz[:, None] + steps])  # (2, n, 2, 3)
    local = ends.reshape(-1, 3) @ pose[:, :3].T + pose[:, 3]
    camera = model.camera(image.camera_id)
    seen = np.subtract(*np.asarray(camera.img_from_cam(local)).reshape(*ends.shape[:-1], 2)[::-1]) / 2
    shown = np.isfinite(seen).all((1, 2))
    return np.where(shown[:, None, None], seen, np.eye(2)), shown


def _gray(path: Path, shrink: float) -> tuple[np.ndarray, np.ndarray]:
    """A gray image (H, W) float32, slightly smoothed as interpolation needs it, and its size by that of the original."""
    import cv2

    from pdc_sfm.images import read_image

    gray = cv2.cvtColor(read_image(path), cv2.COLOR_RGB2GRAY).astype(np.float32)
    size = gray.shape[1], gray.shape[0]
    if shrink > 1:
        gray = cv2.resize(gray, [max(1, round(side / shrink)) for side in size], interpolation=cv2.INTER_AREA)
    return cv2.GaussianBlur(gray, (0, 0), 0.7), np.divide(gray.shape[::-1], size)
