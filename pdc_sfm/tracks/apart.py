"""Points that keep a distance: from each other, the stronger before the weaker, and from others that are there already.

Squares instead of a tree, several times faster: what is near a point lies in its square or in the eight about it.
"""

from __future__ import annotations

import numpy as np

CROWD = 64  # with more points than this in one square, their pairs are not listed
MOST_SQUARES = 2000  # along a side


def radius_nms(points: np.ndarray, weights: np.ndarray, distance: float) -> np.ndarray:
    """Indices of points that are the strongest within `distance`, after those already beaten are gone."""
    if not len(points):
        return np.zeros(0, np.int64)
    squares = _Squares(points, distance)
    if squares.most > CROWD:
        return _strongest_of_crowds(points, weights, distance)
    strong, weak = squares.near_pairs()
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
    return np.flatnonzero(~_Squares(others, distance).any_near(points))


class _Squares:
    """Points (N, 2), at least one, sorted into squares no smaller than a distance."""

    def __init__(self, points: np.ndarray, distance: float):
        axes = _axes(points)
        low, extent = axes.min(1), np.ptp(axes, 1)
        self._side = max(1.001 * distance, extent.max() / MOST_SQUARES) or 1.0  # rounding shall hide no neighbor
        self._low = low - self._side  # empty squares about all
        self._columns, self._rows = (int(length / self._side) + 3 for length in extent)
        self._distance = distance
        square = self._squares(axes)
        count = np.bincount(square, minlength=self._columns * self._rows)
        self.most = int(count.max())
        self._begin = np.append(np.int32(0), np.cumsum(count, dtype=np.int32))  # of each square, in this order
        self._order = np.argsort(square)
        self._square, self._axes = square[self._order], axes.take(self._order, 1)

    def near_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of points within the distance, each once."""
        here = np.arange(len(self._order), dtype=np.int32)
        ahead = self._near(self._axes, here + 1, self._begin[self._square + 2])  # in the same square or right of it
        below = self._near(self._axes, *self._row(self._square + self._columns))
        return tuple(self._order[np.concatenate(ends)] for ends in zip(ahead, below))

    def any_near(self, points: np.ndarray) -> np.ndarray:
        """Whether there is any within the distance of other points (M, 2)."""
        axes = _axes(points)
        square, found = self._squares(axes), np.zeros(len(points), bool)
        for step in (0, -self._columns, self._columns):  # most are found in the middle row
            left = np.flatnonzero(~found)
            found[left[self._near(axes.take(left, 1), *self._row(square[left] + step))[0]]] = True
        return found

    def first_of_nine(self) -> np.ndarray:
        """The points before which there is none in their square or the eight about it."""
        first = np.full((self._rows, self._columns), len(self._order))
        np.minimum.at(first.reshape(-1), self._square, self._order)
        for axis in (0, 1):  # the border is empty, so that nothing comes round
            first = np.minimum.reduce([np.roll(first, step, axis) for step in (-1, 0, 1)])
        return self._order[first.reshape(-1)[self._square] == self._order]

    def _squares(self, axes: np.ndarray) -> np.ndarray:
        """The number of each point's square; those outside are moved to the nearest that can hold any."""
        column, row = (
            ((axis - low) / self._side).clip(1, count - 2).astype(np.int32)
            for axis, low, count in zip(axes, self._low, (self._columns, self._rows))
        )
        return row * self._columns + column

    def _row(self, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where in our order begins and ends what lies in squares, left of them and right of them."""
        return self._begin[square - 1], self._begin[square + 2]

    def _near(self, axes: np.ndarray, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs within the distance: a point of axes (2, M), and one of ours from its start to its stop."""
        count = stop - start
        before = np.cumsum(count, dtype=np.int32) - count
        one = np.repeat(np.arange(len(count), dtype=np.int32), count)
        other = np.arange(len(one), dtype=np.int32) + np.repeat(start - before, count)
        (x, y), (x0, y0) = axes, self._axes
        squared = (x.take(one) - x0.take(other)) ** 2 + (y.take(one) - y0.take(other)) ** 2
        near = np.flatnonzero(squared <= self._distance**2)
        return one[near], other[near]


def _axes(points: np.ndarray) -> np.ndarray:
    """(N, 2) -> (2, N) float64, one after the other in memory."""
    return np.ascontiguousarray(points.T, np.float64)


def _strongest_of_crowds(points: np.ndarray, weights: np.ndarray, distance: float) -> np.ndarray:
    """The same without listing all pairs, whose number is the square of a crowd's: where a flow collapses, thousands.

    The strongest of nine squares beats all that is near it; what is left is looked at again.
    """
    left, kept = np.argsort(-weights, kind="stable"), []  # strongest first
    while len(left):
        winners = left[_Squares(points[left], distance).first_of_nine()]
        kept.append(winners)
        left = left[far_from(points[winners], points[left], distance)]
    return np.sort(np.concatenate(kept))
