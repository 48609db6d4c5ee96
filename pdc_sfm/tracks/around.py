"""The few matches nearest to each of many points: a table of small squares instead of a tree, many times faster.

Matches of a pair cover an image evenly, as the cells of a grid do. So squares that hold about two of them need few places
each, and the nearest ones of a point are among the places of its own square and the eight about it.
"""

from __future__ import annotations

import numpy as np

PLACES = 5  # of a square: what lies in it beyond that is left out
USUAL = 2.0  # matches of a square
CHOICE = np.arange(9 * PLACES, dtype=np.int32)  # the places about a point
LOW_BITS = 63  # of a squared distance, which hold such a number instead: it is compared to one in 100,000
MOST_SQUARES = 1000  # along a side
FAR = 100.0  # squares away from everything: where empty places lie


class GridKNN:
    """Points (N, 2) float32 of an image, at least one."""

    def __init__(self, points: np.ndarray, coarse: float):
        """`coarse` is a length above the distance between neighbors: in squares so large there are no gaps."""
        x, y = points.T.copy()
        self._low = [axis.min() for axis in (x, y)]
        extent = max(float(axis.max() - low) for axis, low in zip((x, y), self._low))
        coarse = max(coarse, extent / MOST_SQUARES)
        occupied = np.count_nonzero(np.bincount(self._squares(x, y, coarse, int(extent / coarse) + 1)))
        self.side = max(coarse * (USUAL * occupied / len(x)) ** 0.5, extent / MOST_SQUARES)
        self._low = [low - np.float32(2.5 * self.side) for low in self._low]  # two empty squares about all
        self._columns, self._rows = (int((axis.max() - low) / self.side) + 3 for axis, low in zip((x, y), self._low))
        self._fill(x, y)

    def _squares(self, x: np.ndarray, y: np.ndarray, side: float, columns: int) -> np.ndarray:
        """The number of each point's square."""
        column, row = (((axis - low) / np.float32(side)).astype(np.int64) for axis, low in zip((x, y), self._low))
        return row * columns + column

    def _fill(self, x: np.ndarray, y: np.ndarray) -> None:
        square = self._squares(x, y, self.side, self._columns)
        index = np.full((self._rows * self._columns, PLACES), -1)
        left = np.arange(len(x))
        for place in range(PLACES):
            index[square, place] = left  # one of each square remains
            more = np.flatnonzero(index[square, place] != left)
            square, left = square[more], left[more]
        self._index = index.reshape(-1)
        empty = (low - np.float32(FAR * self.side) for low in self._low)
        where = _complex(*(np.append(axis, low) for axis, low in zip((x, y), empty)))
        self._where = where.take(self._index)
        self._runs = np.lib.stride_tricks.sliding_window_view(self._where, 3 * PLACES)
        taken = (index[:, 0] >= 0).reshape(self._rows, self._columns)
        taken[:, 1:-1] |= taken[:, :-2] | taken[:, 2:]
        taken[1:-1] |= taken[:-2] | taken[2:]
        self._near = taken.reshape(-1)

    def some_near(self, points: np.ndarray) -> np.ndarray:
        """Indices of those of other points (M, 2) whose square, or one of the eight about it, holds any."""
        inside = True
        for axis, low, count in zip(points.T, self._low, (self._columns, self._rows)):
            inside &= (axis >= low + self.side) & (axis < low + (count - 1) * self.side)
        inside = np.flatnonzero(inside)
        x, y = points[inside].T.astype(np.float32)
        return inside[self._near.take(self._squares(x, y, self.side, self._columns))]

    def nearest(self, points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """For points (M, 2) of `some_near` their nearest ones, nearest first: indices and offsets to them.

        Indices are (count, M) int64, offsets (2, count, M) float32. Of points that have fewer about them, the rest are
        the first again, at offsets far away.
        """
        x, y = points.T.astype(np.float32)
        here = _complex(x, y)
        first = self._squares(x, y, self.side, self._columns) * PLACES
        rows = (
            PLACES * self._columns * np.arange(-1, 2) - PLACES
        )  # of three squares beside each other the places lie together
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


def _complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Both coordinates in one number, so that they are looked up together."""
    both = np.empty(len(x), np.complex64)
    both.real, both.imag = x, y
    return both
