"""Nearest points in an image, with a grid of squares instead of a tree, several times faster.

One grid serves three questions. Points that keep a distance from each other (`radius_nms`) or from others (`far_from`): what
is near a point lies in its square or in the eight about it. The nearest keypoint within a small distance (`RadiusIndex`): a
disc touches at most 2 x 2 squares. The few nearest matches (`GridKNN`): matches of a pair cover an image evenly, so squares
that hold about two of them need few places each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

MOST_SQUARES = 2000  # along a side
CROWD = 64  # points of one square: with more, their pairs are not listed
PLACES = 5  # of a square of `GridKNN`: what lies in it beyond that is left out
USUAL = 2.0  # matches of such a square
MOST_OF_FEW = 1000  # such squares along a side
CHOICE = np.arange(9 * PLACES, dtype=np.int32)  # the places about a point
LOW_BITS = 63  # of a squared distance, which hold such a number instead: it is compared to one in 100,000
FAR = 100.0  # squares away from everything: where empty places lie


@dataclass(frozen=True)
class Grid:
    """Squares over an image, numbered row by row. The outermost are empty, so that every point has eight about its own."""

    low: Sequence[np.floating]  # x, y of the first corner
    side: float
    columns: int
    rows: int

    @staticmethod
    def over(axes: np.ndarray, side: float) -> Grid:
        """Over points (2, N), with squares of a side or, if those were too many, larger ones."""
        low, extent = axes.min(1), np.ptp(axes, 1)
        side = max(side, extent.max() / MOST_SQUARES) or 1.0
        return Grid(low - side, side, *(int(length / side) + 3 for length in extent))

    def square(self, axes: Iterable[np.ndarray]) -> np.ndarray:
        """The number of the square of points (2, N) inside: (N,) int32."""
        column, row = (((axis - low) / self.side).astype(np.int32) for axis, low in zip(axes, self.low))
        return row * self.columns + column

    def nearest_square(self, axes: np.ndarray) -> np.ndarray:
        """The same for any points: of those outside, the nearest square that can hold any."""
        column, row = (
            ((axis - low) / self.side).clip(1, count - 2).astype(np.int32)
            for axis, low, count in zip(axes, self.low, (self.columns, self.rows))
        )
        return row * self.columns + column

    def touched(self, axes: np.ndarray, distance: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """First and last column, then first and last row of squares that discs about points (2, N) touch."""
        reach = distance / self.side + 1e-3  # rounding shall hide no square
        places = [(axis - low) / self.side for axis, low in zip(axes, self.low)]
        return [
            tuple(end.clip(0, count - 1).astype(np.int64) for end in (at - reach, at + reach))
            for at, count in zip(places, (self.columns, self.rows))
        ]


class _SortedPoints:
    """Points (N, 2), at least one, in the order of their squares."""

    def __init__(self, points: np.ndarray, side: float):
        axes = _axes(points)
        self.grid = Grid.over(axes, side)
        square = self.grid.nearest_square(axes)
        count = np.bincount(square, minlength=self.grid.columns * self.grid.rows)
        self.taken, self.crowded = count > 0, int(count.max()) > CROWD
        self.begin = np.append(np.int32(0), np.cumsum(count, dtype=np.int32))  # of each square, in this order
        self.order = np.argsort(square)
        self.square, self.axes = square[self.order], axes.take(self.order, 1)

    def compare(
        self, axes: np.ndarray, square: np.ndarray, todo: np.ndarray, best: np.ndarray, index: np.ndarray
    ) -> None:
        """Compare other points, those `todo`, with all of ours in their square: squared distance and index of the nearest."""
        square, (x, y), (x0, y0) = square[todo], axes.take(todo, 1), self.axes
        place, last = self.begin[square], self.begin[square + 1]
        while len(todo):
            squared = (x - x0[place]) ** 2 + (y - y0[place]) ** 2
            before, there = best[todo], self.order[place]
            nearer = np.flatnonzero((squared < before) | ((squared == before) & (there < index[todo])))
            best[todo[nearer]] = squared[nearer]
            index[todo[nearer]] = there[nearer]
            more = np.flatnonzero(place + 1 < last)
            todo, x, y, place, last = todo[more], x[more], y[more], place[more] + 1, last[more]


def radius_nms(points: np.ndarray, weights: np.ndarray, distance: float) -> np.ndarray:
    """Indices of points that are the strongest within `distance`, after those already beaten are gone."""
    if not len(points):
        return np.zeros(0, np.int64)
    near = _Near(points, distance)
    if near.crowded:
        return _nms_of_crowds(points, weights, distance)
    strong, weak = near.pairs()
    wrong = (weights[strong] < weights[weak]) | ((weights[strong] == weights[weak]) & (strong > weak))
    strong, weak = np.where(wrong, weak, strong), np.where(wrong, strong, weak)
    gone = np.zeros(len(points), bool)
    while len(strong):
        rivalled = np.zeros(len(points), bool)
        rivalled[weak] = True
        gone[weak[~rivalled[strong]]] = True
        left = np.flatnonzero(~(gone[strong] | gone[weak]))
        strong, weak = strong[left], weak[left]
    return np.flatnonzero(~gone)


def far_from(others: np.ndarray, points: np.ndarray, distance: float) -> np.ndarray:
    """Indices of points farther than `distance` from all others."""
    if not len(others) or not len(points):
        return np.arange(len(points))
    return np.flatnonzero(~_Near(others, distance).any_near(points))


def _nms_of_crowds(points: np.ndarray, weights: np.ndarray, distance: float) -> np.ndarray:
    """The same without listing all pairs, whose number is the square of a crowd's: where a flow collapses, thousands.

    The strongest of nine squares beats all that is near it; what is left is looked at again.
    """
    left, kept = np.argsort(-weights, kind="stable"), []  # strongest first
    while len(left):
        winners = left[_Near(points[left], distance).first_of_nine()]
        kept.append(winners)
        left = left[far_from(points[winners], points[left], distance)]
    return np.sort(np.concatenate(kept))


class _Near(_SortedPoints):
    """Points, and which are within a distance: the squares are no smaller than it."""

    def __init__(self, points: np.ndarray, distance: float):
        super().__init__(points, 1.001 * distance)  # rounding shall hide no neighbor
        self._distance = distance

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of points within the distance, each once."""
        here = np.arange(len(self.order), dtype=np.int32)
        ahead = self._near(self.axes, here + 1, self.begin[self.square + 2])  # in the same square or right of it
        below = self._near(self.axes, *self._row(self.square + self.grid.columns))
        one, other = (self.order[np.concatenate(ends)] for ends in zip(ahead, below))
        return one, other

    def any_near(self, points: np.ndarray) -> np.ndarray:
        """Whether there is any within the distance of other points (M, 2)."""
        axes = _axes(points)
        square, found = self.grid.nearest_square(axes), np.zeros(len(points), bool)
        for step in (0, -self.grid.columns, self.grid.columns):  # most are found in the middle row
            left = np.flatnonzero(~found)
            found[left[self._near(axes.take(left, 1), *self._row(square[left] + step))[0]]] = True
        return found

    def first_of_nine(self) -> np.ndarray:
        """The points before which there is none in their square or the eight about it."""
        first = np.full((self.grid.rows, self.grid.columns), len(self.order))
        np.minimum.at(first.reshape(-1), self.square, self.order)
        for axis in (0, 1):  # the border is empty, so that nothing comes round
            first = np.minimum.reduce([np.roll(first, step, axis) for step in (-1, 0, 1)])
        return self.order[first.reshape(-1)[self.square] == self.order]

    def _row(self, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where in our order begins and ends what lies in squares, left of them and right of them."""
        return self.begin[square - 1], self.begin[square + 2]

    def _near(self, axes: np.ndarray, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs within the distance: a point of axes (2, M), and one of ours from its start to its stop."""
        count = stop - start
        before = np.cumsum(count, dtype=np.int32) - count
        one = np.repeat(np.arange(len(count), dtype=np.int32), count)
        other = np.arange(len(one), dtype=np.int32) + np.repeat(start - before, count)
        (x, y), (x0, y0) = axes, self.axes
        squared = (x.take(one) - x0.take(other)) ** 2 + (y.take(one) - y0.take(other)) ** 2
        near = np.flatnonzero(squared <= self._distance**2)
        return one[near], other[near]


class RadiusIndex:
    """Keypoints (K, 2) of an image, sorted once for all its pairs."""

    def __init__(self, keypoints: np.ndarray, distance: float):
        self._keypoints, self._distance = keypoints, float(distance)
        self._sorted = _SortedPoints(keypoints, max(2.1 * distance, 1.0)) if len(keypoints) else None

    def of(self, points: np.ndarray) -> np.ndarray:
        """For each point (N, 2) the index of the nearest keypoint no farther than the distance, or -1: (N,) int64.

        Of keypoints equally near the first one is taken.
        """
        best = np.full(len(points), np.inf), np.full(len(points), -1, np.int64)  # squared distance, keypoint
        if not len(points) or self._sorted is None:
            return best[1]
        if self._sorted.crowded:
            from scipy.spatial import cKDTree

            away, index = cKDTree(self._keypoints).query(points, distance_upper_bound=1.001 * self._distance + 1e-6)
            return np.where(away <= self._distance, index, -1)
        axes = _axes(points)
        (left, right), (top, bottom) = self._sorted.grid.touched(axes, self._distance)
        for row, new_row in ((top, None), (bottom, bottom != top)):
            for column, new_column in ((left, None), (right, right != left)):
                square = row * self._sorted.grid.columns + column
                todo = self._sorted.taken[square]
                for new in (new_row, new_column):
                    if new is not None:
                        todo &= new
                self._sorted.compare(axes, square, np.flatnonzero(todo), *best)
        return np.where(best[0] <= self._distance**2, best[1], -1)


class GridKNN:
    """Points (N, 2) float32 of an image, at least one: the few nearest to each of many others."""

    def __init__(self, points: np.ndarray, coarse: float):
        """`coarse` is a length above the distance between neighbors: in squares so large there are no gaps."""
        axes = x, y = points.T.copy()
        low = [axis.min() for axis in axes]
        extent = max(float(axis.max() - start) for axis, start in zip(axes, low))
        coarse = max(coarse, extent / MOST_OF_FEW)
        count = int(extent / coarse) + 1
        occupied = np.count_nonzero(np.bincount(Grid(low, coarse, count, count).square(axes)))
        self.side = side = max(coarse * (USUAL * occupied / len(x)) ** 0.5, extent / MOST_OF_FEW)
        low = [start - np.float32(2.5 * side) for start in low]  # two empty squares about all
        self._grid = Grid(low, side, *(int((axis.max() - start) / side) + 3 for axis, start in zip(axes, low)))
        self._fill(x, y)

    def _fill(self, x: np.ndarray, y: np.ndarray) -> None:
        grid = self._grid
        square = grid.square((x, y))
        index = np.full((grid.rows * grid.columns, PLACES), -1)
        left = np.arange(len(x))
        for place in range(PLACES):
            index[square, place] = left  # one of each square remains
            more = np.flatnonzero(index[square, place] != left)
            square, left = square[more], left[more]
        self._index = index.reshape(-1)
        empty = (low - np.float32(FAR * grid.side) for low in grid.low)
        where = _complex(*(np.append(axis, low) for axis, low in zip((x, y), empty)))
        self._where = where.take(self._index)
        self._runs = np.lib.stride_tricks.sliding_window_view(self._where, 3 * PLACES)
        taken = (index[:, 0] >= 0).reshape(grid.rows, grid.columns)
        taken[:, 1:-1] |= taken[:, :-2] | taken[:, 2:]
        taken[1:-1] |= taken[:-2] | taken[2:]
        self._near = taken.reshape(-1)

    def some_near(self, points: np.ndarray) -> np.ndarray:
        """Indices of those of other points (M, 2) whose square, or one of the eight about it, holds any."""
        inside = np.ones(len(points), bool)
        for axis, low, count in zip(points.T, self._grid.low, (self._grid.columns, self._grid.rows)):
            inside &= (axis >= low + self.side) & (axis < low + (count - 1) * self.side)
        found = np.flatnonzero(inside)
        return found[self._near.take(self._grid.square(points[found].T.astype(np.float32)))]

    def nearest(self, points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """For points (M, 2) of `some_near` their nearest ones, nearest first: indices and offsets to them.

        Indices are (count, M) int64, offsets (2, count, M) float32. Of points that have fewer about them, the rest are
        the first again, at offsets far away.
        """
        x, y = points.T.astype(np.float32)
        here = _complex(x, y)
        first = self._grid.square((x, y)) * PLACES
        # of three squares beside each other the places lie together
        rows = PLACES * self._grid.columns * np.arange(-1, 2) - PLACES
        about = (np.arange(3 * PLACES) + rows[:, None]).reshape(-1)
        away = self._runs[first[:, None] + rows].reshape(len(x), -1)
        away -= here[:, None]
        parts = away.view(np.float32)
        parts *= parts
        keys = (parts[:, ::2] + parts[:, 1::2]).view(np.int32)  # floats above zero are in the order of their bits
        keys &= ~LOW_BITS
        keys |= CHOICE
        keys.sort(1)
        place = first + about.take(keys[:, :count].T & LOW_BITS)
        offset = self._where.take(place)
        offset -= here
        index = self._index.take(place)
        fewer = np.flatnonzero(index[-1] < 0)
        some = index[:, fewer]
        index[:, fewer] = np.where(some < 0, some[0], some)
        return index, np.stack((offset.real, offset.imag))


def _axes(points: np.ndarray) -> np.ndarray:
    """(N, 2) -> (2, N) float64, one after the other in memory."""
    return np.ascontiguousarray(points.T, np.float64)


def _complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Both coordinates in one number, so that they are looked up together."""
    both = np.empty(len(x), np.complex64)
    both.real, both.imag = x, y
    return both
