"""What the flows to an image's partners say of its depth, cell by cell.

With known cameras a point can only move along its epipolar line: the nearest point of the line to where the flow leads is an
inverse depth, and the error of the flow an error of it. What several partners say is combined by inverse variance, as far
as they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.fusion.geometry import NEAREST, Transfer

# Pixels: error of a flow that is right, along the line and across it. The median of true errors of confident cells (0.9) is
# 0.2 to 0.7 of the first (the built-in scene; the median of a normal distribution, 0.67).
SIGMA, ACROSS = 0.5, 1.0
LEAST_CONFIDENCE = 0.02  # of a vote that others are compared with


@dataclass(frozen=True)
class Votes:
    """Inverse depths by the flows to the partners, (P, h, w) each."""

    rho: np.ndarray
    sigma: np.ndarray  # standard deviation of a right one; inf where there is none
    weight: np.ndarray  # the probability of being right


@dataclass(frozen=True)
class FlowDepth:
    """What they come to, (h, w) each."""

    rho: np.ndarray
    sigma: np.ndarray
    probability: np.ndarray  # 0: nothing is known

    @staticmethod
    def unknown(shape: tuple[int, int]) -> FlowDepth:
        """Nothing is known anywhere."""
        return FlowDepth(*(np.full(shape, value, np.float32) for value in (1.0, 1.0, 0.0)))


def vote(estimate: DenseEstimate, transfer: Transfer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inverse depth, its standard deviation and weight, (h, w) each, by the flow to one partner."""
    points, there = (array.astype(np.float64) for array in (estimate.reference_points, estimate.query_points))
    origin = transfer.rows(points[..., 0], points[..., 1], np.zeros(points.shape[:2]))  # the point at infinity
    shift = transfer.shift.astype(np.float64)
    # u (origin_z + rho shift_z) = origin + rho shift: two linear equations of rho
    left = [there[..., axis] * origin[2] - origin[axis] for axis in (0, 1)]
    right = [shift[axis] - there[..., axis] * shift[2] for axis in (0, 1)]
    rho = (left[0] * right[0] + left[1] * right[1]) / np.maximum(right[0] ** 2 + right[1] ** 2, 1e-12)
    ratio = origin[2] + rho * shift[2]
    good = estimate.valid & (ratio > NEAREST) & (rho > 0)
    safe = np.where(good, ratio, 1.0)
    nearest = [(origin[axis] + rho * shift[axis]) / safe for axis in (0, 1)]
    off = np.hypot(nearest[0] - there[..., 0], nearest[1] - there[..., 1])
    parallax = np.hypot(shift[0] - nearest[0] * shift[2], shift[1] - nearest[1] * shift[2]) / safe
    sigma = np.where(good & (parallax > 0), SIGMA / np.maximum(parallax, 1e-12), np.inf)
    weight = np.where(np.isfinite(sigma), estimate.confidence * np.exp(-0.5 * (off / ACROSS) ** 2), 0)
    return rho.astype(np.float32), sigma.astype(np.float32), weight.astype(np.float32)


def combine(votes: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> FlowDepth:
    """The inverse depth that most votes agree on: the weighted mean of those near it, by inverse variance.

    Each vote in turn is the center; others count by how well they agree with it. The probability that the best center is
    right is that of not all who agree being wrong.
    """
    given = Votes(*(np.stack(part) for part in zip(*votes)))
    best = FlowDepth.unknown(given.rho.shape[1:])
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for rho, sigma, weight in zip(given.rho, given.sigma, given.weight):
            spread = 2 * (given.sigma**2 + sigma**2)
            agree = np.nan_to_num(given.weight * np.exp(-0.5 * (given.rho - rho) ** 2 / spread))
            probability = 1 - np.prod(1 - np.clip(agree, 0, 0.99), axis=0)
            information = np.nan_to_num(agree / given.sigma**2, posinf=0.0)
            total = np.maximum(information.sum(0), 1e-12)
            better = (probability > best.probability) & (weight > LEAST_CONFIDENCE)
            best.rho[better] = ((information * given.rho).sum(0) / total)[better]
            best.sigma[better] = np.sqrt(1 / total)[better]
            best.probability[better] = probability[better]
    return best
