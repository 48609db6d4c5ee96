"""Maps any point of an image through the dense matches of a pair: a robust local fit to the matches around it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pdc_sfm.matches.types import RawMatches
from pdc_sfm.tracks.spatial import GridKNN

NEIGHBORS = 10  # an affine function has three unknowns a coordinate: half of these (MIN_SHARE) still determine it
FEWEST = 8  # matches of a pair, of which half are one more than the unknowns; with fewer nothing is propagated
MIN_SHARE = 0.5  # of the neighbors' weight that must agree with the fit: with less, the others could be right
FLATTEN = 1e-3  # pull of the slope towards zero, so that points on a line do no harm
PART = 8192  # points fitted at a time: few for the memory, many for threads, which wait for each other between steps


@dataclass(frozen=True)
class Propagated:
    """Those of the given points that could be propagated to the other image."""

    index: np.ndarray  # (M,) into the given points
    points: np.ndarray  # (M, 2) float64, in the other image
    scores: np.ndarray  # (M,) float32, mean score of the matches around, those that agree
    weights: np.ndarray  # (M,) float64, their sum: how well the place is supported
    tolerance: float = 0.0  # pixels within which matches around a point agreed: half the distance between matches


def propagate(matches: RawMatches, points: np.ndarray, reach: float) -> Propagated:
    """Propagate points (N, 2) of the first image to the second, where matches lie near and agree with each other.

    The displacement is fitted by an affine function of place to the nearest matches, weighted by score and distance;
    those that do not fit (another surface, a wrong match) lose their weight. Points farther from any match than matches
    are from each other, or than `reach`, are left out, as are those whose surroundings disagree.
    """
    none = Propagated(np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, np.float32), np.zeros(0))
    if len(matches) < FEWEST or not len(points):
        return none
    around = GridKNN(matches.keypoints0, reach)
    spacing = min(_spacing(matches.keypoints0, around), reach, around.side)
    index = around.some_near(points)
    if not len(index):
        return none
    shift = (matches.keypoints1 - matches.keypoints0).T.copy()
    parts = [
        _propagate_part(points[part], part, around, shift, matches.scores, spacing)
        for part in np.array_split(index, -(-len(index) // PART))
    ]
    index, there, scores, weights = (np.concatenate(some) for some in zip(*parts))
    return Propagated(index, there, scores, weights.astype(np.float64), 0.5 * spacing)


def _spacing(points: np.ndarray, around: GridKNN) -> float:
    """The usual distance from a match to its fourth neighbor: about a step of the grid."""
    x, y = around.nearest(points[:: max(1, len(points) // 500)], 5)[1][:, -1]
    return max(float(np.sqrt(np.median(x * x + y * y))), 1.0)


def _propagate_part(
    at: np.ndarray, index: np.ndarray, around: GridKNN, shift: np.ndarray, scores: np.ndarray, spacing: float
) -> tuple[np.ndarray, ...]:
    """Points (M, 2) of an index (M,): the index, place, mean score and weight of those that can be propagated.

    All matches have displacements (2, N) and scores (N,).
    """
    found, (x, y) = around.nearest(at, NEIGHBORS)  # (k, M)
    squared = x * x + y * y
    scores = scores.take(found)
    prior = scores * np.exp(squared * np.float32(-0.5 / spacing**2))
    shift = np.stack([axis.take(found) for axis in shift], 1)
    there, weight = _fit((x, y), shift, prior, np.sqrt(squared), spacing)
    support = weight.sum(0)
    good = np.flatnonzero((support >= MIN_SHARE * prior.sum(0)) & (squared[0] < spacing**2))
    mean = (weight * scores).sum(0) / np.maximum(support, 1e-12)
    there = np.stack([axis.take(good) for axis in there], 1)
    return index[good], at.take(good, 0) + there.astype(np.float64), mean[good], support[good]


def _fit(
    offset: Sequence[np.ndarray], shift: np.ndarray, prior: np.ndarray, distance: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (2, M) at offset zero, by reweighted least squares from the median, and final weights (k, M), float32.

    The neighbors stand first, x and y apart: sums over them are then sums of long rows, and the 3 x 3 systems are
    solved by elimination, all at once. `shift` is (k, 2, M), all else (k, M).
    """
    (x, y), tolerance = offset, 0.5 * spacing
    middle = column_median(shift)
    shift = shift - middle
    weight = prior / (1 + np.einsum("kjm,kjm->km", shift, shift) / (2 * tolerance + 0.3 * distance) ** 2) ** 2
    for _ in range(2):
        total = weight.sum(0) + 1e-12
        wx, wy = weight * x, weight * y
        mx, my = wx.sum(0) / total, wy.sum(0) / total
        pull = FLATTEN * spacing**2 * total
        xx, yy = (np.einsum("km,km->m", w, t) - total * m * m + pull for w, t, m in ((wx, x, mx), (wy, y, my)))
        xy = np.einsum("km,km->m", wx, y) - total * mx * my
        determinant = xx * yy - xy * xy
        mean, xd, yd = (np.einsum("km,kjm->jm", w, shift) for w in (weight, wx, wy))  # each (2, M)
        mean = mean / total
        xd, yd = xd - total * mx * mean, yd - total * my * mean
        slope_x, slope_y = (yy * xd - xy * yd) / determinant, (xx * yd - xy * xd) / determinant
        here = mean - slope_x * mx - slope_y * my
        error = slope_x * x[:, None]
        error += slope_y * y[:, None]
        error += here
        error -= shift
        weight = prior / (1 + np.einsum("kjm,kjm->km", error, error) / tolerance**2) ** 2
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
