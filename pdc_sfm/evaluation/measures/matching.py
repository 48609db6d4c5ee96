"""Accuracy of sparse matches: mean matching accuracy (D2-Net's protocol, Sec. 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MMA_THRESHOLDS = tuple(float(t) for t in range(1, 11))
MOST_MATCHES = 2000  # of a pair, the most confident: sparse methods are usually compared with 2,000 keypoints


def most_confident(scores: np.ndarray, count: int = MOST_MATCHES) -> np.ndarray:
    """Indices of the `count` highest scores, highest first."""
    return np.argsort(-np.asarray(scores), kind="stable")[:count]


def matching_accuracy(errors: np.ndarray, thresholds: Sequence[float] = MMA_THRESHOLDS) -> np.ndarray:
    """Of one pair: the share of matches whose error is at most each threshold, (T,). Without matches it is 0."""
    if len(errors) == 0:
        return np.zeros(len(thresholds))
    return np.array([np.mean(errors <= t) for t in thresholds])


def mean_matching_accuracy(errors: Sequence[np.ndarray], thresholds: Sequence[float] = MMA_THRESHOLDS) -> np.ndarray:
    """MMA: the mean over pairs of each one's matching accuracy, (T,)."""
    if not errors:
        return np.full(len(thresholds), np.nan)
    return np.mean([matching_accuracy(pair, thresholds) for pair in errors], axis=0)
