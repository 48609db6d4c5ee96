"""Keypoints shared by many pairs, voted for by dense matches (hloc's rule).

Dense matchers find the points of every pair anew. A track needs one identity per image and point, and a cell is that
identity: all observations of an image, from all its pairs, vote with their scores for small bins inside cells; the best
bin of each cell is a keypoint, and every match goes to the keypoints nearest to its two ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pdc_sfm.matches.one_to_one import best_of_groups, one_to_one
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.tracks.spatial import RadiusIndex

FAR = np.iinfo(np.int64).max
LARGEST_TABLE = 1 << 24  # entries, 128 MB of int64


@dataclass(frozen=True)
class VotedKeypoints:
    """Keypoints of one image, in pixel indices."""

    points: np.ndarray  # (K, 2) float32
    scores: np.ndarray  # (K,) float32

    def __len__(self) -> int:
        return len(self.points)

    @staticmethod
    def none() -> VotedKeypoints:
        return VotedKeypoints(np.zeros((0, 2), np.float32), np.zeros(0, np.float32))

    def select(self, kept: np.ndarray) -> VotedKeypoints:
        """Those of a mask (K,)."""
        return self if kept.all() else VotedKeypoints(self.points[kept], self.scores[kept])

    def best(self, count: int | None) -> VotedKeypoints:
        """The `count` of highest score, highest first, earlier ones first among equals; None keeps all as they are."""
        if count is None:
            return self
        order = strongest_first(self.scores)[:count]
        return VotedKeypoints(self.points[order], self.scores[order])


def strongest_first(scores: np.ndarray) -> np.ndarray:
    """The order (N,) of scores >= 0 float32 from the highest on, earlier ones first among equals.

    Both are put into one number, ten times as fast to sort as an order that keeps equals in place.
    """
    falling = ~np.ascontiguousarray(scores, np.float32).view(
        np.int32
    )  # floats above zero are in the order of their bits
    numbers = (falling.astype(np.int64) << 32) + np.arange(len(scores))
    numbers.sort()
    return numbers & 0xFFFFFFFF


def vote_keypoints(
    points: np.ndarray, scores: np.ndarray, max_error: float, cell_size: float
) -> tuple[VotedKeypoints, np.ndarray]:
    """Keypoints from all observations (N, 2) of an image, in order of first sight, and each observation's own (N,).

    Cells are max(cell_size, max_error) wide and bins int(max_error); with sizes 0 every distinct point is a keypoint.
    A keypoint lies at the center of its cell's best bin, and its score is that bin's sum.
    """
    points = np.asarray(points, np.float32)
    cell, cell_count = _cells(points, max(cell_size, max_error))
    box, box_count = _bins(points, max(cell_size, max_error), int(max_error), cell, cell_count)
    votes = np.zeros(box_count, np.float32)
    np.add.at(votes, box, np.asarray(scores, np.float32))  # one after the other in float32, as a loop would
    first = _first_sight(box, box_count)
    seen = np.flatnonzero(first < FAR)
    winner = best_of_groups(cell[first[seen]], votes[seen], first[seen], cell_count)  # an observation in the best bin
    first = _first_sight(cell, cell_count)
    starts = np.zeros(len(cell), bool)  # whether an observation is the first of its cell
    starts[first[first < FAR]] = True
    cells = cell[starts]
    number = np.empty(cell_count, np.int64)
    number[cells] = np.arange(len(cells))
    winner = winner[cells]
    return VotedKeypoints(_centers(points[winner], int(max_error)), votes[box[winner]]), number[cell]


def link(matches: RawMatches, keypoints0: RadiusIndex, keypoints1: RadiusIndex) -> tuple[np.ndarray, np.ndarray]:
    """Raw matches as matches between the keypoints nearest to their two ends: (M, 2) int32 and scores (M,)."""
    ids0, ids1 = keypoints0.of(matches.keypoints0), keypoints1.of(matches.keypoints1)
    scores = np.asarray(matches.scores, np.float32)
    kept = one_to_one(ids0, ids1, scores)
    return np.stack((ids0[kept], ids1[kept]), 1).astype(np.int32), scores[kept]


def _cells(points: np.ndarray, size: float) -> tuple[np.ndarray, int]:
    """A number for each point's cell (N,), and a bound of these numbers. With size 0 each distinct point is a cell."""
    if size <= 0:
        keys = np.ascontiguousarray(points + np.float32(0)).view(np.int64).reshape(-1)  # + 0: -0.0 is 0.0
        return _compact(keys, FAR)
    if not len(points):
        return np.zeros(0, np.int64), 0
    x, y = (axis - axis.min() for axis in _lattice(points, size))
    columns, rows = int(x.max()) + 1, int(y.max()) + 1
    return _compact(y * columns + x, columns * rows)


def _bins(points: np.ndarray, cell_size: float, size: int, cell: np.ndarray, cells: int) -> tuple[np.ndarray, int]:
    """A number for each point's bin inside its cell: a bin across the border of two cells is a bin of each."""
    if size <= 0 or cell_size <= 0:  # each distinct point is a bin, and lies in one cell only
        return _cells(points, 0)
    if size == cell_size:  # each cell is a bin
        return cell, cells
    lowest = (np.floor((axis - 0.5) * (cell_size / size)).astype(np.int64) for axis in _lattice(points, cell_size))
    x, y = (axis - low for axis, low in zip(_lattice(points, size), lowest))
    width = math.ceil(cell_size / size) + 2
    return _compact((cell * width + y) * width + x, cells * width**2)


def _lattice(points: np.ndarray, size: float) -> np.ndarray:
    """Column and row of each point's cell, (2, N) int64."""
    return np.rint((np.ascontiguousarray(points.T) + np.float32(0.5)) / np.float32(size)).astype(np.int64)


def _centers(points: np.ndarray, size: int) -> np.ndarray:
    """round((x + 0.5) / size) * size - 0.5"""
    return points.copy() if size <= 0 else (_lattice(points, size).T * size - 0.5).astype(np.float32)


def _compact(keys: np.ndarray, bound: int) -> tuple[np.ndarray, int]:
    """Keys below a bound that a table can have: themselves if the bound is small enough, else their ranks."""
    if bound <= LARGEST_TABLE:
        return keys, bound
    distinct, ranks = np.unique(keys, return_inverse=True)
    return ranks.reshape(-1), len(distinct)


def _first_sight(keys: np.ndarray, bound: int) -> np.ndarray:
    first = np.full(bound, FAR)
    first[keys[::-1]] = np.arange(len(keys))[::-1]  # of several the last assigned stays
    return first
