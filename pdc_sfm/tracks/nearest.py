"""The nearest keypoint of many points within a small distance: buckets instead of a tree, several times faster."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

CROWDED = 64  # with more keypoints than this in one bucket, a tree is faster
LARGEST_TABLE = 1 << 24


class RadiusIndex:
    """Keypoints (K, 2) of an image, sorted once for all its pairs."""

    def __init__(self, keypoints: np.ndarray, distance: float):
        self._keypoints, self._distance = keypoints, float(distance)
        self._table = _Buckets.build(keypoints, distance) if len(keypoints) else None

    def of(self, points: np.ndarray) -> np.ndarray:
        """For each point (N, 2) the index of the nearest keypoint no farther than the distance, or -1: (N,) int64.

        Of keypoints equally near the first one is taken.
        """
        if not len(points) or not len(self._keypoints):
            return np.full(len(points), -1, np.int64)
        if self._table is None:
            return _by_tree(points, self._keypoints, self._distance)
        x, y = points.T.astype(np.float64)
        best = _Best(np.full(len(x), np.inf), np.full(len(x), -1, np.int64))
        left, right, top, bottom = self._table.around(x, y, self._distance)
        for row, new_row in ((top, None), (bottom, bottom != top)):
            for column, new_column in ((left, None), (right, right != left)):
                bucket = row + column
                todo = self._table.count[bucket] > 0
                for new in (new_row, new_column):
                    if new is not None:
                        todo &= new
                self._table.search(x, y, bucket, np.flatnonzero(todo), best)
        return np.where(best.squared <= self._distance**2, best.index, -1)


@dataclass(frozen=True)
class _Best:
    squared: np.ndarray  # (N,) squared distance to the nearest keypoint so far
    index: np.ndarray  # (N,) that keypoint


@dataclass(frozen=True)
class _Buckets:
    """Keypoints sorted into squares so large that a disc of the wanted distance touches at most 2 x 2 of them."""

    x: np.ndarray  # (K,) float64, bucket by bucket
    y: np.ndarray
    order: np.ndarray  # (K,) their index
    start: np.ndarray  # of each bucket in that order
    count: np.ndarray
    low: np.ndarray
    side: float
    columns: int
    rows: int

    @staticmethod
    def build(keypoints: np.ndarray, distance: float) -> _Buckets | None:
        """None if a tree is the better choice."""
        side = max(2.1 * distance, 1.0)
        low = keypoints.min(0).astype(np.float32) - np.float32(side)  # a border of empty buckets for points outside
        columns, rows = (math.ceil(extent / side) + 2 for extent in (keypoints.max(0) - low).tolist())
        if columns * rows > LARGEST_TABLE:
            return None
        cells = ((keypoints - low) / np.float32(side)).astype(np.int64)
        bucket = cells[:, 1] * columns + cells[:, 0]
        count = np.bincount(bucket, minlength=columns * rows).astype(np.int32)
        if count.max() > CROWDED:
            return None
        order = np.argsort(bucket, kind="stable")
        x, y = keypoints[order].T.astype(np.float64)
        return _Buckets(x, y, order, np.cumsum(count) - count, count, low, side, columns, rows)

    def around(self, x: np.ndarray, y: np.ndarray, distance: float) -> list[np.ndarray]:
        """First and last bucket column, then first and last bucket row (as offset), that discs about points touch."""
        reach = distance / self.side + 1e-3  # keypoints were sorted in float32, whose rounding shall hide no bucket
        found = []
        for axis, low, size, step in ((x, self.low[0], self.columns, 1), (y, self.low[1], self.rows, self.columns)):
            at = (axis - float(low)) / self.side
            for end in (at - reach, at + reach):
                found.append(end.clip(0, size - 1).astype(np.int64) * step)
        return found

    def search(self, x: np.ndarray, y: np.ndarray, bucket: np.ndarray, todo: np.ndarray, best: _Best) -> None:
        """Compare the points `todo` with all keypoints of their bucket."""
        bucket, x, y = bucket[todo], x[todo], y[todo]
        place, last = self.start[bucket], self.start[bucket] + self.count[bucket]
        while len(todo):
            squared = (x - self.x[place]) ** 2 + (y - self.y[place]) ** 2
            before, index = best.squared[todo], self.order[place]
            nearer = np.flatnonzero((squared < before) | ((squared == before) & (index < best.index[todo])))
            best.squared[todo[nearer]] = squared[nearer]
            best.index[todo[nearer]] = index[nearer]
            more = np.flatnonzero(place + 1 < last)
            todo, x, y, place, last = todo[more], x[more], y[more], place[more] + 1, last[more]


def _by_tree(points: np.ndarray, keypoints: np.ndarray, distance: float) -> np.ndarray:
    from scipy.spatial import cKDTree

    away, index = cKDTree(keypoints).query(points, distance_upper_bound=1.001 * distance + 1e-6)
    return np.where(away <= distance, index, -1)
