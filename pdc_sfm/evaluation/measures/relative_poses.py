"""Accuracy of relative poses over a dataset (Sec. 4.4): AUC and mAP of max(rotation error, translation error)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

POSE_THRESHOLDS = (5.0, 10.0, 20.0)  # degrees
STEP = 5.0  # mAP averages the accuracy at 5, 10, 15, 20 degrees (OANet)


def pose_accuracy(errors: np.ndarray, threshold: float) -> float:
    """Acc: the share of pairs whose error is below the threshold. A pair without a pose has an infinite error."""
    return float(np.mean(np.asarray(errors) < threshold))


def pose_map(errors: np.ndarray, thresholds: Sequence[float] = POSE_THRESHOLDS) -> tuple[float, ...]:
    """mAP@5 = Acc-5; mAP@10 = mean of Acc-5, 10; mAP@20 = mean of Acc-5, 10, 15, 20."""
    return tuple(
        float(np.mean([pose_accuracy(errors, step) for step in np.arange(STEP, threshold + 1e-9, STEP)]))
        for threshold in thresholds
    )


def pose_auc(errors: np.ndarray, thresholds: Sequence[float] = POSE_THRESHOLDS) -> tuple[float, ...]:
    """Area under the curve of recall over error, up to each threshold and divided by it (SuperGlue's protocol).

    The curve joins the points (error, share of pairs with at most this error) by straight lines, from (0, 0).
    """
    ordered = np.concatenate([[0.0], np.sort(np.asarray(errors, np.float64))])
    recall = np.arange(len(ordered)) / max(len(ordered) - 1, 1)
    areas = []
    for threshold in thresholds:
        below = np.searchsorted(ordered, threshold)
        x = np.concatenate([ordered[:below], [threshold]])
        y = np.concatenate([recall[:below], [recall[below - 1]]])
        areas.append(float(np.trapezoid(y, x) / threshold))
    return tuple(areas)
