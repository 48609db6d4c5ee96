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
    tree = cKDTree(matches.keypoints0)
    spacing = min(_spacing(tree), reach)
    index = np.flatnonzero(np.isfinite(tree.query(points, distance_upper_bound=spacing)[0]))
    if not len(index):
        return none
    at = points[index].astype(np.float64)
    distance, around = tree.query(at, min(NEIGHBOURS, len(matches)))
    offset = matches.keypoints0[around] - at[:, None]  # (M, k, 2)
    shift = matches.keypoints1[around].astype(np.float64) - matches.keypoints0[around]
    scores = matches.scores[around].astype(np.float64)
    prior = scores * np.exp(-0.5 * (distance / spacing) ** 2)
    there, weight = _fit(offset, shift, prior, distance, spacing)
    agreeing = weight.sum(1) >= MIN_SHARE * prior.sum(1)
    mean = (weight * scores).sum(1) / np.maximum(weight.sum(1), 1e-12)
    return Transferred(
        index[agreeing],
        (at + there)[agreeing],
        mean[agreeing].astype(np.float32),
        weight.sum(1)[agreeing],
        0.5 * spacing,
    )


def _spacing(tree) -> float:
    """The usual distance from a match to its fourth neighbour: about a step of the grid."""
    sample = tree.data[:: max(1, tree.n // 500)]
    return max(float(np.median(tree.query(sample, 5)[0][:, -1])), 1.0)


def _fit(
    offset: np.ndarray, shift: np.ndarray, prior: np.ndarray, distance: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (M, 2) at offset zero, by reweighted least squares from the median, and final weights (M, k)."""
    tolerance = 0.5 * spacing
    terms = np.concatenate((np.ones((*offset.shape[:2], 1)), offset), 2)  # (M, k, 3)
    error = np.linalg.norm(shift - np.median(shift, 1, keepdims=True), axis=2)
    weight = prior / (1 + (error / (2 * tolerance + 0.3 * distance)) ** 2) ** 2
    for _ in range(2):
        weighted = terms * weight[..., None]
        normal = weighted.transpose(0, 2, 1) @ terms
        pull = FLATTEN * spacing**2 * weight.sum(1) + 1e-12
        normal[:, [0, 1, 2], [0, 1, 2]] += np.stack((np.full(len(pull), 1e-12), pull, pull), 1)
        solution = np.linalg.solve(normal, weighted.transpose(0, 2, 1) @ shift)  # (M, 3, 2)
        error = np.linalg.norm(terms @ solution - shift, axis=2)
        weight = prior / (1 + (error / tolerance) ** 2) ** 2
    return solution[:, 0], weight
