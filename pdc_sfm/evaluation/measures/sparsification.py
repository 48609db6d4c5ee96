"""Does a confidence rank the errors? Sparsification curves and AUSE (Sec. 4.3, appendix "Evaluation metrics").

The least certain pixels are taken away step by step, and the mean cost of those that stay is plotted. The cost is the
end-point error (AEPE) or, for PCK-5, 1 where the error is above 5 pixels. Both the curve and the oracle's, which takes
away the worst first, are divided by the cost of the whole image, so that they begin at 1 and every pair weighs alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STEPS = 50  # the curve has a point at each 1/50 removed


@dataclass(frozen=True)
class Sparsification:
    """Curve and oracle at `removed`, (STEPS + 1,) each; with everything removed the cost is 0."""

    curve: np.ndarray
    oracle: np.ndarray

    @property
    def removed(self) -> np.ndarray:
        return np.linspace(0, 1, len(self.curve))

    @property
    def error(self) -> np.ndarray:
        """The sparsification error: how far the curve stays above the oracle's."""
        return self.curve - self.oracle

    @property
    def ause(self) -> float:
        """Area under the sparsification error curve."""
        return float(np.trapezoid(self.error, self.removed))


def aepe_cost(errors: np.ndarray) -> np.ndarray:
    """End-point errors as the cost."""
    return np.asarray(errors, np.float64)


def pck_cost(errors: np.ndarray, threshold: float = 5.0) -> np.ndarray:
    """1 where the error is above the threshold: the mean cost is 1 - PCK."""
    return (np.asarray(errors) > threshold).astype(np.float64)


def sparsification(cost: np.ndarray, uncertainty: np.ndarray, steps: int = STEPS) -> Sparsification:
    """Of one image pair: cost and uncertainty (N,); the higher the uncertainty, the sooner a pixel is removed.

    A pair without any cost (all correct) has nothing to rank: both curves are 0.
    """
    if len(cost) == 0:
        raise ValueError("a sparsification curve needs pixels")
    whole = cost.mean()
    scale = 1.0 / whole if whole > 0 else 0.0
    oracle = np.sort(cost)
    return Sparsification(
        scale * _means_of_rest(_ranked(cost, uncertainty), steps), scale * _means_of_rest(oracle, steps)
    )


def mean_sparsification(pairs: Sequence[Sparsification]) -> Sparsification:
    """The dataset's curve is the mean of its pairs' curves."""
    return Sparsification(np.mean([p.curve for p in pairs], axis=0), np.mean([p.oracle for p in pairs], axis=0))


def _ranked(cost: np.ndarray, uncertainty: np.ndarray) -> np.ndarray:
    """The costs, most certain first. Pixels that tie get their mean: what a random order among them is worth."""
    _, group = np.unique(uncertainty, return_inverse=True)
    means = np.bincount(group, cost) / np.bincount(group)
    return means[np.sort(group)]


def _means_of_rest(ordered: np.ndarray, steps: int) -> np.ndarray:
    """Mean of the first part of the costs, after removing 0, 1/steps, ... 1 of them from the end: (steps + 1,)."""
    kept = np.round(len(ordered) * (1 - np.arange(steps + 1) / steps)).astype(int)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    return np.where(kept > 0, sums[kept] / np.maximum(kept, 1), 0.0)
