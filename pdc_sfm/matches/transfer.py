"""Where the dense matches of a pair put any point of its first image: a robust local fit to the matches around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.matches.types import RawMatches

NEIGHBOURS = 12
FEWEST = 8  # matches of a pair, below which nothing is carried over
MIN_SHARE = 0.5  # of the neighbours' weight that must agree with the fit
FLATTEN = 1e-3  # pull of the slope towards zero, so that points on a line do no harm


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
    index = np.flatnonzero(np.isfinite(tree.query(points, distance_upper_bound=spacing)[0]))
    if not len(index):
        return none
    at = points[index].astype(np.float64)
    distance, around = tree.query(at, min(NEIGHBOURS, len(matches)))
    distance, around = distance.T.astype(np.float32), around.T.copy()  # (k, M)
    shift = np.ascontiguousarray((matches.keypoints1 - matches.keypoints0).T)
    offset = [(x[around] - at[:, axis]).astype(np.float32) for axis, x in enumerate(tree.data.T.copy())]
    scores = matches.scores[around]
    prior = scores * np.exp(-0.5 * (distance / np.float32(spacing)) ** 2)
    there, weight = _fit(offset, [u[around] for u in shift], prior, distance, spacing)
    support = weight.sum(0)
    agreeing = support >= MIN_SHARE * prior.sum(0)
    mean = (weight * scores).sum(0) / np.maximum(support, 1e-12)
    return Transferred(
        index[agreeing], (at + there)[agreeing], mean[agreeing], support[agreeing].astype(np.float64), 0.5 * spacing
    )


def _spacing(tree) -> float:
    """The usual distance from a match to its fourth neighbour: about a step of the grid."""
    sample = tree.data[:: max(1, tree.n // 500)]
    return max(float(np.median(tree.query(sample, 5)[0][:, -1])), 1.0)


def _fit(
    offset: list[np.ndarray], shift: list[np.ndarray], prior: np.ndarray, distance: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (M, 2) at offset zero, by reweighted least squares from the median, and final weights (k, M), float32.

    The neighbours stand first, x and y apart: sums over them are then sums of long rows, and the 3 x 3 systems are
    solved by elimination, all at once.
    """
    (x, y), tolerance = offset, 0.5 * spacing
    middle = [np.median(u, 0) for u in shift]
    u, v = (u - m for u, m in zip(shift, middle))
    weight = prior / (1 + (u * u + v * v) / (2 * tolerance + 0.3 * distance) ** 2) ** 2
    for _ in range(2):
        total = weight.sum(0) + 1e-12
        wx, wy = weight * x, weight * y
        mx, my = wx.sum(0) / total, wy.sum(0) / total
        pull = FLATTEN * spacing**2 * total
        xx, yy = (np.vecdot(w, t, axis=0) - total * m * m + pull for w, t, m in ((wx, x, mx), (wy, y, my)))
        xy = np.vecdot(wx, y, axis=0) - total * mx * my
        determinant = xx * yy - xy * xy
        here, error = [], 0.0
        for d in (u, v):
            mean = np.vecdot(weight, d, axis=0) / total
            xd, yd = (np.vecdot(w, d, axis=0) - total * m * mean for w, m in ((wx, mx), (wy, my)))
            slope_x, slope_y = (yy * xd - xy * yd) / determinant, (xx * yd - xy * xd) / determinant
            here.append(mean - slope_x * mx - slope_y * my)
            error = error + (here[-1] + slope_x * x + slope_y * y - d) ** 2
        weight = prior / (1 + error / tolerance**2) ** 2
    return np.stack(here, 1) + np.stack(middle, 1), weight
