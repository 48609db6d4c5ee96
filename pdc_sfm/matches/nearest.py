"""The nearest keypoint of many points within a small distance: buckets instead of a tree, several times faster."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

CROWDED = 64  # with more keypoints than this in one bucket, a tree is faster
LARGEST_TABLE = 1 << 24


def nearest_within(points: np.ndarray, keypoints: np.ndarray, distance: float) -> np.ndarray:
    """For each point (N, 2) the index of the nearest keypoint (K, 2) no farther than `distance`, or -1: (N,) int64.

    Of keypoints equally near the first one is taken.
    """
    if not len(points) or not len(keypoints):
        return np.full(len(points), -1, np.int64)
    table = _Buckets.build(keypoints, distance)
    if table is None:
        return _by_tree(points, keypoints, distance)
    best = _Best(np.full(len(points), np.inf), np.full(len(points), -1, np.int64))
    left, right, top, bottom = table.around(points, distance)
    for row, new_row in ((top, None), (bottom, bottom != top)):
        for column, new_column in ((left, None), (right, right != left)):
            bucket = row + column
            todo = table.count[bucket] > 0
            for new in (new_row, new_column):
                if new is not None:
                    todo &= new
            table.search(points, bucket, np.flatnonzero(todo), best)
    return np.where(best.squared <= float(distance) ** 2, best.index, -1)


@dataclass(frozen=True)
class _Best:
    squared: np.ndarray  # (N,) squared distance to the nearest keypoint so far
    index: np.ndarray  # (N,) that keypoint


@dataclass(frozen=True)
class _Buckets:
    """Keypoints sorted into squares so large that a disc of the wanted distance touches at most 2 x 2 of them."""

    keypoints: np.ndarray  # (K, 2) float64
    low: np.ndarray
    side: float
    columns: int
    rows: int
    order: np.ndarray  # keypoints, bucket by bucket
    start: np.ndarray  # of each bucket in that order
    count: np.ndarray

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
        start = np.cumsum(count) - count
        return _Buckets(keypoints.astype(np.float64), low, side, columns, rows, order, start, count)

    def around(self, points: np.ndarray, distance: float) -> list[np.ndarray]:
        """First and last bucket column, then first and last bucket row (as offset), that discs about points touch."""
        reach = np.float32(distance / self.side + 1e-3)  # float32 rounding never hides a bucket
        found = []
        for axis, (size, step) in enumerate(((self.columns, 1), (self.rows, self.columns))):
            at = (points[:, axis] - self.low[axis]) / np.float32(self.side)
            for end in (at - reach, at + reach):
                found.append(end.clip(0, size - 1).astype(np.int32) * np.int32(step))
        return found

    def search(self, points: np.ndarray, bucket: np.ndarray, todo: np.ndarray, best: _Best) -> None:
        """Compare the points `todo` with all keypoints of their bucket."""
        bucket, place = bucket[todo], 0
        while len(todo):
            index = self.order[self.start[bucket] + place]
            offset = points[todo] - self.keypoints[index]
            squared = offset[:, 0] ** 2 + offset[:, 1] ** 2
            nearer = (squared < best.squared[todo]) | ((squared == best.squared[todo]) & (index < best.index[todo]))
            best.squared[todo[nearer]] = squared[nearer]
            best.index[todo[nearer]] = index[nearer]
            place += 1
            more = self.count[bucket] > place
            todo, bucket = todo[more], bucket[more]


def _by_tree(points: np.ndarray, keypoints: np.ndarray, distance: float) -> np.ndarray:
    from scipy.spatial import cKDTree

    away, index = cKDTree(keypoints).query(points, distance_upper_bound=1.001 * distance + 1e-6)
    return np.where(away <= distance, index, -1)
