"""Missing matches: what both images of a pair show at one place, by the map, and what nevertheless did not match.

Two walls with the same windows match where they are the same, and the map lays one over the other. What tells them apart (a
poster here, another curtain there) does not match: it lies in plain sight where the other wall was laid over it, at the same
depth, yet no point there is seen by both images (Zach et al., "What can missing correspondences tell us about 3D structure and
motion", 2008). Where a map is right, images that see a surface from about the same side share points all over it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pycolmap

from pdc_sfm.colmap.mapping.coverage_cells import GRID, cell_numbers

SAME_DEPTH = 0.05  # of the depth: a point there lies on the surface that the image shows, not behind or before it
SAME_SIDE = np.cos(
    np.radians(30)
)  # between the rays of a point to both cameras: matches of such views are no matter of luck
SAME_SIZE = 2.0  # times as far from one camera as from the other, likewise
CELLS = (GRID + 1) * (GRID + 1)  # numbers of cells, of pictures of any shape
KEPT = 256  # images whose points are kept in memory


class SharedCells(NamedTuple):
    """Cells of both images of a pair, added up."""

    shared: int  # in which they see the same points
    missed: int  # in which both see a surface at the same place, and no point of it together


class _View(NamedTuple):
    """What an image sees of a model."""

    image: pycolmap.Image
    camera: pycolmap.Camera
    ids: np.ndarray  # (N,) of its points, in order
    points: np.ndarray  # (N, 3)
    cells: np.ndarray  # (N,) in which they lie
    nearest: np.ndarray  # (cells,) depth of the nearest of its points in each cell; infinite where there is none
    farthest: np.ndarray


class MissingMatches:
    """Counts the cells of two images of a model in which points of both lie at one place, joined and not."""

    def __init__(self, model: pycolmap.Reconstruction):
        self._model = model
        self._view = functools.lru_cache(KEPT)(self._read_view)

    def __call__(self, first: int, second: int) -> SharedCells:
        one, other = self._view(first), self._view(second)
        both = np.intersect1d(one.ids, other.ids, assume_unique=True)
        counts = [_count(view, beside, both) for view, beside in ((one, other), (other, one))]
        return SharedCells(*(sum(numbers) for numbers in zip(*counts)))

    def _read_view(self, image_id: int) -> _View:
        image = self._model.image(image_id)
        camera = self._model.camera(image.camera_id)
        ids = np.unique([point.point3D_id for point in image.get_observation_points2D()]).astype(np.uint64)
        points = np.array([self._model.point3D(int(i)).xyz for i in ids]).reshape(-1, 3)
        cells, depths = _project(image, camera, points)
        nearest, farthest = np.full(CELLS, np.inf), np.full(CELLS, -np.inf)
        seen = cells >= 0
        np.minimum.at(nearest, cells[seen], depths[seen])
        np.maximum.at(farthest, cells[seen], depths[seen])
        return _View(image, camera, ids, points, cells, nearest, farthest)


def _project(image: pycolmap.Image, camera: pycolmap.Camera, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) cells of points (N, 3) in a picture, -1 outside of it, and their depths."""
    local = np.asarray(image.cam_from_world() * points).reshape(-1, 3)
    cells, before = np.full(len(points), -1), local[:, 2] > 0
    if before.any():
        pixels = np.asarray(camera.img_from_cam(local[before])).reshape(-1, 2)
        inside = ((pixels >= 0) & (pixels < (camera.width, camera.height))).all(1)
        cells[np.flatnonzero(before)[inside]] = cell_numbers(pixels[inside], camera)
    return cells, local[:, 2]


def _count(view: _View, beside: _View, both: np.ndarray) -> SharedCells:
    """Of the cells of one image, those that share points with another, and those that should."""
    joined = np.zeros(CELLS, bool)
    joined[view.cells[np.isin(view.ids, both, assume_unique=True) & (view.cells >= 0)]] = True
    points = beside.points[~np.isin(beside.ids, both, assume_unique=True)]
    cells, depths = _project(view.image, view.camera, points)
    inside = cells >= 0
    points, cells, depths = points[inside], cells[inside], depths[inside]
    rays = [center - points for center in (v.image.projection_center() for v in (view, beside))]
    lengths = [np.linalg.norm(ray, axis=1) for ray in rays]
    alike = (rays[0] * rays[1]).sum(1) > SAME_SIDE * lengths[0] * lengths[1]
    alike &= np.maximum(*lengths) < SAME_SIZE * np.minimum(*lengths)
    there = (depths > (1 - SAME_DEPTH) * view.nearest[cells]) & (depths < (1 + SAME_DEPTH) * view.farthest[cells])
    expected = np.zeros_like(joined)
    expected[cells[alike & there]] = True
    return SharedCells(int(joined.sum()), int((expected & ~_grown(joined)).sum()))


def _grown(cells: np.ndarray) -> np.ndarray:
    """Cells and those beside them: matches end within a cell."""
    grid = np.pad(cells.reshape(GRID + 1, GRID + 1), 1)
    return (grid[1:-1, 1:-1] | grid[:-2, 1:-1] | grid[2:, 1:-1] | grid[1:-1, :-2] | grid[1:-1, 2:]).ravel()
