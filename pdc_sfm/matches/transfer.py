"""Where the dense matches of a pair put any point of its first image: a robust local fit to the matches around it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pdc_sfm.matches.types import RawMatches

NEIGHBOURS = 12
FEWEST = 8  # matches of a pair, below which nothing is carried over
MIN_SHARE = 0.5  # of the neighbours' weight that must agree with the fit
FLATTEN = 1e-3  # pull of the slope towards zero, so that points on a line do no harm
PART = 8192  # points fitted at a time: few for the memory, many for threads, which wait for each other between steps


@dataclass(frozen=True)
class Transferred:
    """Those of the given points that could be carried to the other image."""

    index: np.ndarray  # (M,) into the given points
    points: np.ndarray  # (M, 2) float64, in the other image
    scores: np.ndarray  # (M,) float32, mean score of the matches around, those that agree
    weights: np.ndarray  # (M,) float64, their sum: how well the place is supported
    tolerance: float = 0.0  # pixels within which matches around a point agreed: half the distance between matches


def transfer(matches: RawMatches, points: np.ndarray, reach: float) -> Transferred:
    """Carry points (N, 2) of the first image to the second, where matches lie near and agree with each other.

    The displacement is fitted by an affine function of place to the nearest matches, weighted by score and distance;
    those that do not fit (another surface, a wrong match) lose their weight. Points farther from any match than matches
    are from each other, or than `reach`, are left out, as are those whose surroundings disagree.
    """
    from scipy.spatial import cKDTree

    none = Transferred(np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, np.float32), np.zeros(0))
    if len(matches) < FEWEST or not len(points):
        return none
    tree = cKDTree(matches.keypoints0, balanced_tree=False, compact_nodes=False)  # built in a third of the time
    spacing = min(_spacing(tree), reach)
    index = _near(points, tree, spacing)
    if not len(index):
        return none
    field = _Field(*tree.data.T.copy(), (matches.keypoints1 - matches.keypoints0).T.copy(), matches.scores)
    parts = [
        field.carry(points[part].astype(np.float64), part, tree, spacing)
        for part in np.array_split(index, -(-len(index) // PART))
    ]
    index, there, scores, weights = (np.concatenate(some) for some in zip(*parts))
    order = np.argsort(index)
    return Transferred(index[order], there[order], scores[order], weights[order].astype(np.float64), 0.5 * spacing)


def _spacing(tree) -> float:
    """The usual distance from a match to its fourth neighbour: about a step of the grid."""
    sample = tree.data[:: max(1, tree.n // 500)]
    return max(float(np.median(tree.query(sample, 5)[0][:, -1])), 1.0)


def _near(points: np.ndarray, tree, distance: float) -> np.ndarray:
    """Indices of all points (N, 2) within `distance` of the tree's, and some others; neighbours one after the other.

    A tree finds what is around points a quarter faster in this order than in any other.
    """
    low, high = tree.mins - 1.01 * distance, tree.maxes + 1.01 * distance
    side = max(1.01 * distance, float((high - low).max()) / 1000)
    columns, rows = (int(extent // side) + 1 for extent in high - low)
    taken = np.zeros((rows + 2, columns + 2), bool)
    x, y = (((axis - start) / side).astype(np.int64) for axis, start in zip(tree.data.T, low))
    taken[y + 1, x + 1] = True
    taken = taken[:-2] | taken[1:-1] | taken[2:]
    taken = taken[:, :-2] | taken[:, 1:-1] | taken[:, 2:]
    (x, y), inside = points.T.astype(np.float64), True
    for axis, start, end in zip((x, y), low, high):
        inside &= (axis >= start) & (axis < end)
    inside = np.flatnonzero(inside)
    x, y = (((axis[inside] - start) / side).astype(np.int64) for axis, start in zip((x, y), low))
    found = np.flatnonzero(taken[y, x])
    x, y = x[found], y[found]
    return inside[found[np.argsort(y * columns + np.where(y % 2, columns - 1 - x, x))]]  # row by row, to and fro


@dataclass(frozen=True)
class _Field:
    """Places and displacements of the matches of a pair."""

    x: np.ndarray  # (N,) float64
    y: np.ndarray
    shift: np.ndarray  # (2, N) float32
    scores: np.ndarray  # (N,) float32

    def carry(self, at: np.ndarray, index: np.ndarray, tree, spacing: float) -> tuple[np.ndarray, ...]:
        """Points (M, 2) of an index (M,): the index, place, mean score and weight of those that can be carried."""
        distance, around = tree.query(at, min(NEIGHBOURS, tree.n))
        distance, around = distance.T.astype(np.float32), around.T.copy()  # (k, M)
        offset = [axis.take(around) - here for axis, here in zip((self.x, self.y), at.T)]
        nearest = offset[0][0] ** 2 + offset[1][0] ** 2
        scores = self.scores.take(around)
        prior = scores * np.exp(-0.5 * (distance / np.float32(spacing)) ** 2)
        shift = np.stack([axis.take(around) for axis in self.shift], 1)
        there, weight = _fit([axis.astype(np.float32) for axis in offset], shift, prior, distance, spacing)
        support = weight.sum(0)
        good = np.flatnonzero((support >= MIN_SHARE * prior.sum(0)) & (nearest < spacing**2))
        mean = (weight * scores).sum(0) / np.maximum(support, 1e-12)
        return index[good], at[good] + there.T[good], mean[good], support[good]


def _fit(
    offset: Sequence[np.ndarray], shift: np.ndarray, prior: np.ndarray, distance: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (2, M) at offset zero, by reweighted least squares from the median, and final weights (k, M), float32.

    The neighbours stand first, x and y apart: sums over them are then sums of long rows, and the 3 x 3 systems are
    solved by elimination, all at once. `shift` is (k, 2, M), all else (k, M).
    """
    (x, y), tolerance = offset, 0.5 * spacing
    middle = column_median(shift)
    shift = shift - middle
    weight = prior / (1 + (shift * shift).sum(1) / (2 * tolerance + 0.3 * distance) ** 2) ** 2
    for _ in range(2):
        total = weight.sum(0) + 1e-12
        wx, wy = weight * x, weight * y
        mx, my = wx.sum(0) / total, wy.sum(0) / total
        pull = FLATTEN * spacing**2 * total
        xx, yy = ((w * t).sum(0) - total * m * m + pull for w, t, m in ((wx, x, mx), (wy, y, my)))
        xy = (wx * y).sum(0) - total * mx * my
        determinant = xx * yy - xy * xy
        mean, xd, yd = ((w[:, None] * shift).sum(0) for w in (weight, wx, wy))  # each (2, M)
        mean = mean / total
        xd, yd = xd - total * mx * mean, yd - total * my * mean
        slope_x, slope_y = (yy * xd - xy * yd) / determinant, (xx * yd - xy * xd) / determinant
        here = mean - slope_x * mx - slope_y * my
        error = here + slope_x * x[:, None] + slope_y * y[:, None] - shift
        weight = prior / (1 + (error * error).sum(1) / tolerance**2) ** 2
    return here + middle, weight


def column_median(values: np.ndarray) -> np.ndarray:
    """Over the first axis, by exchanges of whole rows: many times faster than sorting columns that are so short."""
    rows, count = list(values), len(values)
    for i, j in _exchanges(count):
        rows[i], rows[j] = np.minimum(rows[i], rows[j]), np.maximum(rows[i], rows[j])
    return (rows[(count - 1) // 2] + rows[count // 2]) / 2


@functools.cache
def _exchanges(count: int) -> list[tuple[int, int]]:
    """Pairs of places whose exchange in this order sorts so many values: Batcher's merge exchange."""
    found, top = [], 1 << max(count - 1, 1).bit_length() - 1
    p = top
    while p:
        q, r, d = top, 0, p
        while d:
            found += [(i, i + d) for i in range(count - d) if i & p == r]
            d, q, r = q - p, q >> 1, p
        p >>= 1
    return found
