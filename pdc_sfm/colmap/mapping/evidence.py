"""What each verified pair says of a finished model: how much of its images it covers, and how much of it the model explains.

The share of a pair's matches that agree with one geometry tells nothing: a small patch of smooth flow agrees with many. What
it covers does: wrong pairs cover few cells of their images.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.mapping.coverage_cells import GRID, cell_numbers
from pdc_sfm.colmap.mapping.missing import MissingMatches
from pdc_sfm.colmap.mapping.verification import epipolar_errors, stationary

MAX_ERROR = 4.0  # pixels: as verification allows
PARALLAX = np.radians(0.2)  # below, it is noise whether a point lies before its cameras
CLOSE = 0.25  # of a cell: 4 pixels of 1024
# Of its matches, what a pair's own geometry explains so closely, where it is less: that of RANSAC need not be the best, and where
# a plane fills both pictures it is any.
FEWEST_CLOSE = 0.8
EXPLAINED = 0.5  # of its matches, for a pair to support what the model says, not to contradict it
KEPT = 256  # images whose keypoints are kept in memory


@dataclasses.dataclass(frozen=True)
class PairEvidence:
    """A verified pair of registered images."""

    first: int  # image ids; of images of a rig, the first of their frame
    second: int
    matches: int  # verified
    cells: int  # that they cover, in the image where these are fewer
    explained: float  # share of the matches that the model explains
    explained_cells: int  # that these cover, in the image where they are fewer
    occupied: int  # cells with matches of any pair, in the image where these are fewer
    exact: float = (
        1.0  # the same within `CLOSE` of a cell, where that is less, by what the pair's own geometry explains so
    )
    still: float = 0.0  # share of the explained matches that stand as close in both pictures
    shared: int = 0  # cells of both images in which they see the same points of the model
    missed: int = 0  # cells in which they should, and see none together
    # of a pair that the model does not explain: the turn of the world (rotation vector) by which the part of the model that the
    # first image is of would have to stand otherwise; None: not known
    turn: tuple[float, float, float] | None = None


def weigh_pairs(model: pycolmap.Reconstruction, database: Path) -> Iterator[PairEvidence]:
    """Each verified pair of registered images, read one after the other: matches of many pairs need no memory.

    Images of one frame of a rig stand where it does: one of them (`frame_images`) is named for all, and what pairs of two
    frames say is added up.
    """
    registered, frame_of = set(model.reg_image_ids()), frame_images(model)
    together: dict[tuple[int, int], PairEvidence] = {}  # of frames with several images
    several = {first for image, first in frame_of.items() if image != first}
    with pycolmap.Database.open(database) as opened:
        verified = [pycolmap.pair_id_to_image_pair(i) for i in opened.read_two_view_geometry_num_inliers()[0]]
        pairs = [ids for ids in verified if registered.issuperset(ids) and frame_of[ids[0]] != frame_of[ids[1]]]
        weigh, occupied = PairScales(model, opened), _matched_cells(model, opened, pairs)
        count_missing = MissingMatches(model)
        for ids in pairs:
            found, geometry = _verified_matches(opened, ids), opened.read_two_view_geometry(*ids)
            if len(found):
                first, second = sorted(frame_of[image_id] for image_id in ids)
                most = min(occupied[image_id] for image_id in ids)
                pair = weigh(ids, found, geometry.E)
                turn = None if pair.explained >= EXPLAINED else weigh.turn(ids, geometry)
                if turn is not None and first == frame_of[ids[1]]:
                    turn = (-turn[0], -turn[1], -turn[2])
                cells = count_missing(*ids)._asdict()
                pair = dataclasses.replace(pair, occupied=most, first=first, second=second, turn=turn, **cells)
                if several.isdisjoint((first, second)):
                    yield pair
                else:
                    known = together.get((first, second))
                    together[first, second] = pair if known is None else _added(known, pair)
    yield from together.values()


def _added(one: PairEvidence, other: PairEvidence) -> PairEvidence:
    """What two pairs of the same frames say together."""
    matches = one.matches + other.matches
    return dataclasses.replace(
        one,
        matches=matches,
        cells=one.cells + other.cells,
        explained=(one.explained * one.matches + other.explained * other.matches) / matches,
        explained_cells=one.explained_cells + other.explained_cells,
        exact=(one.exact * one.matches + other.exact * other.matches) / matches,
        still=(one.still * one.matches + other.still * other.matches) / matches,
        occupied=max(one.occupied, other.occupied),
        shared=one.shared + other.shared,
        missed=one.missed + other.missed,
    )


def _verified_matches(database: pycolmap.Database, pair: tuple[int, int]) -> np.ndarray:
    """(M, 2) numbers of keypoints."""
    return np.asarray(database.read_two_view_geometry(*pair).inlier_matches, np.int64).reshape(-1, 2)


def _matched_cells(
    model: pycolmap.Reconstruction, database: pycolmap.Database, pairs: Sequence[tuple[int, int]]
) -> dict[int, int]:
    """How many cells of each image have matches of any of these pairs: keypoints of what stood still have none."""
    read = functools.lru_cache(KEPT)(lambda i: database.read_keypoints(i)[:, :2])
    masks: dict[int, np.ndarray] = {}
    for pair in pairs:
        for image_id, column in zip(pair, _verified_matches(database, pair).T):
            camera = model.camera(model.image(image_id).camera_id)
            mask = masks.setdefault(image_id, np.zeros((GRID + 2) * (GRID + 1), bool))
            mask[cell_numbers(read(image_id)[column], camera)] = True
    return {image_id: int(mask.sum()) for image_id, mask in masks.items()}


def frame_images(model: pycolmap.Reconstruction) -> dict[int, int]:
    """For each registered image the first of its frame: itself, unless it was taken by a rig."""
    first: dict[int, int] = {}
    for image_id in sorted(model.reg_image_ids()):
        first.setdefault(model.image(image_id).frame_id, image_id)
    return {image_id: first[model.image(image_id).frame_id] for image_id in model.reg_image_ids()}


class PairScales:
    """Weighs matches of two images of a model against its cameras; keypoints are those of a database."""

    def __init__(self, model: pycolmap.Reconstruction, database: pycolmap.Database):
        self._model, self._database = model, database
        self._view = functools.lru_cache(KEPT)(self._read_view)

    def __call__(self, ids: tuple[int, int], found: np.ndarray, essential: np.ndarray | None = None) -> PairEvidence:
        """`found` (M, 2) are verified matches of the images with these ids, and `essential` the matrix that verified them."""
        (camera0, points0, rays0, cells0, pose0), (camera1, points1, rays1, cells1, pose1) = map(self._view, ids)
        rotation = pose1[:, :3] @ pose0[:, :3].T
        translation = pose1[:, 3] - rotation @ pose0[:, 3]
        rays = rays0[found[:, 0]], rays1[found[:, 1]]
        close = [CLOSE * max(camera.width, camera.height) / GRID for camera in (camera0, camera1)]
        allowed, sharp = (
            tuple(
                camera.cam_from_img_threshold(min(MAX_ERROR, error))
                for camera, error in zip((camera0, camera1), errors)
            )
            for errors in ((MAX_ERROR, MAX_ERROR), close)
        )
        good = explained_matches(rotation, translation, *rays, allowed)
        exact = good if sharp == allowed else explained_matches(rotation, translation, *rays, sharp)
        sides = cells0[found[:, 0]], cells1[found[:, 1]]
        covered, explained = (min(len(np.unique(side[kept])) for side in sides) for kept in (slice(None), good))
        occupied = min(len(np.unique(cells)) for cells in (cells0, cells1))
        both = (points0, points1), found[good], close[0], (camera0, camera1)
        return PairEvidence(
            *ids,
            matches=len(found),
            cells=covered,
            explained=float(good.mean()),
            explained_cells=explained,
            occupied=occupied,
            exact=min(1.0, float(exact.mean()) / _closely_explained(essential, rays, sharp)),
            still=float(stationary(*both).mean()) if good.any() else 0.0,
        )

    def turn(self, ids: tuple[int, int], geometry: pycolmap.TwoViewGeometry) -> tuple[float, float, float] | None:
        """Rotation vector of the world, as seen from the first image, by which the two-view geometry differs from the model."""
        (camera0, points0, _, _, pose0), (camera1, points1, _, _, pose1) = map(self._view, ids)
        try:
            pycolmap.estimate_two_view_geometry_pose(camera0, points0, camera1, points1, geometry)
        except ValueError:  # matches that were not verified have none
            return None
        if geometry.cam2_from_cam1 is None:
            return None
        between = geometry.cam2_from_cam1.rotation.matrix()
        x, y, z = Rotation.from_matrix(pose1[:, :3].T @ between @ pose0[:, :3]).as_rotvec()
        return float(x), float(y), float(z)

    def _read_view(self, image_id: int) -> tuple[pycolmap.Camera, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        image = self._model.image(image_id)
        camera, points = self._model.camera(image.camera_id), self._database.read_keypoints(image_id)[:, :2]
        pose = np.asarray(image.cam_from_world().matrix())
        return camera, points, rays_of(camera, points), cell_numbers(points, camera), pose


def _closely_explained(
    essential: np.ndarray | None, rays: tuple[np.ndarray, np.ndarray], limits: Sequence[float]
) -> float:
    """Share of matches near the lines of a pair's own geometry, at least `FEWEST_CLOSE`; all where there is none."""
    if essential is None or not np.any(essential):
        return 1.0
    errors = epipolar_errors(np.asarray(essential), *rays)
    return max(FEWEST_CLOSE, float(((errors[0] <= limits[0]) & (errors[1] <= limits[1])).mean()))


def explained_matches(
    rotation: np.ndarray, translation: np.ndarray, rays0: np.ndarray, rays1: np.ndarray, limits: Sequence[float]
) -> np.ndarray:
    """(M,) bool: matches near their epipolar lines whose points lie before both cameras; x1 ~ rotation x0 + translation."""
    length = np.linalg.norm(translation)
    if length < 1e-12:  # one place: a point's direction must be the same
        turned = np.c_[rays0, np.ones(len(rays0))] @ rotation.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return (turned[:, 2] > 0) & (np.linalg.norm(turned[:, :2] / turned[:, 2:] - rays1, axis=1) <= limits[1])
    direction = translation / length
    essential = np.cross(np.eye(3), direction) @ rotation
    errors = epipolar_errors(essential, rays0, rays1)
    near = (errors[0] <= limits[0]) & (errors[1] <= limits[1])
    a, b = np.c_[rays0, np.ones(len(rays0))] @ rotation.T, np.c_[rays1, np.ones(len(rays1))]
    normal = np.cross(a, b)
    depth0 = -(np.cross(direction, b) * normal).sum(1)  # up to a positive factor, of depth0 a + direction = depth1 b
    depth1 = -(np.cross(direction, a) * normal).sum(1)
    sine = np.linalg.norm(normal, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return near & (((depth0 > 0) & (depth1 > 0)) | ((sine < PARALLAX) & ((a * b).sum(1) > 0)))
