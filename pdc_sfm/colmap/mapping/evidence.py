"""What each verified pair says of a finished model: how much of its images it covers, and how much of it the model explains.

The share of a pair's matches that agree with one geometry tells nothing: a small patch of smooth flow agrees with many. What
it covers does: wrong pairs cover few cells of their images.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.mapping.verification import epipolar_errors

GRID = 64  # cells along the longer side of an image: 16 pixels of 1024
MAX_ERROR = 4.0  # pixels: as verification allows
PARALLAX = np.radians(0.2)  # below, it is noise whether a point lies before its cameras
KEPT = 256  # images whose keypoints are kept in memory


@dataclasses.dataclass(frozen=True)
class PairEvidence:
    """A verified pair of registered images."""

    first: int  # image ids
    second: int
    matches: int  # verified
    cells: int  # that they cover, in the image where these are fewer
    explained: float  # share of the matches that the model explains
    explained_cells: int  # that these cover, in the image where they are fewer
    occupied: int  # cells with keypoints, in the image where these are fewer


def weigh_pairs(model: pycolmap.Reconstruction, database: Path) -> Iterator[PairEvidence]:
    """Each verified pair of registered images, read one after the other: matches of many pairs need no memory."""
    registered = set(model.reg_image_ids())
    with pycolmap.Database.open(database) as opened:
        weigh = PairScales(model, opened)
        for pair_id in opened.read_two_view_geometry_num_inliers()[0]:
            ids = pycolmap.pair_id_to_image_pair(pair_id)
            if registered.issuperset(ids):
                found = np.asarray(opened.read_two_view_geometry(*ids).inlier_matches, np.int64).reshape(-1, 2)
                if len(found):
                    yield weigh(ids, found)


class PairScales:
    """Weighs matches of two images of a model against its cameras; keypoints are those of a database."""

    def __init__(self, model: pycolmap.Reconstruction, database: pycolmap.Database):
        self._model, self._database = model, database
        self._view = functools.lru_cache(KEPT)(self._read_view)

    def __call__(self, ids: tuple[int, int], found: np.ndarray) -> PairEvidence:
        """`found` (M, 2) are verified matches of the images with these ids."""
        (camera0, rays0, cells0, pose0), (camera1, rays1, cells1, pose1) = map(self._view, ids)
        rotation = pose1[:, :3] @ pose0[:, :3].T
        translation = pose1[:, 3] - rotation @ pose0[:, 3]
        limits = camera0.cam_from_img_threshold(MAX_ERROR), camera1.cam_from_img_threshold(MAX_ERROR)
        good = explained_matches(rotation, translation, rays0[found[:, 0]], rays1[found[:, 1]], limits)
        sides = cells0[found[:, 0]], cells1[found[:, 1]]
        covered, explained = (min(len(np.unique(side[kept])) for side in sides) for kept in (slice(None), good))
        occupied = min(len(np.unique(cells)) for cells in (cells0, cells1))
        return PairEvidence(*ids, len(found), covered, float(good.mean()), explained, occupied)

    def _read_view(self, image_id: int) -> tuple[pycolmap.Camera, np.ndarray, np.ndarray, np.ndarray]:
        image = self._model.image(image_id)
        camera, points = self._model.camera(image.camera_id), self._database.read_keypoints(image_id)[:, :2]
        pose = np.asarray(image.cam_from_world().matrix())
        return camera, rays_of(camera, points), cell_numbers(points, camera), pose


def cell_numbers(points: np.ndarray, camera: pycolmap.Camera) -> np.ndarray:
    """(N,) the cell that each keypoint (N, 2) lies in."""
    size = max(camera.width, camera.height) / GRID
    column, row = np.floor(np.asarray(points, np.float64).T / size).astype(np.int64)
    return row * (GRID + 1) + column


def explained_matches(
    rotation: np.ndarray, translation: np.ndarray, rays0: np.ndarray, rays1: np.ndarray, limits: tuple[float, float]
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
