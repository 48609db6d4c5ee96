"""The probability that a depth is right, within 2 %: logistic functions of what speaks for it and against it.

First of what an image knows by itself. Then of that, of what is believed around the pixel, and of what the image's partners
say, each as far as it is believed itself: that they see the same surface, or that they see through it.
"""

from __future__ import annotations

import cv2
import numpy as np

RIGHT = 0.02  # of its depth: no further off
REACH, TIGHT = 2, 0.003  # pixels: neighbors on a plane are counted in 5 x 5, up to this of inverse depth;
STEP, NEARER = 2, 0.02  # those that lie nearer by this, in 9 x 9: what is around a surface is taken for it
AVERAGED = 11  # pixels each way, over which belief is averaged
FEW, UNSURE = 0.1, 0.02  # views and probabilities: less is not told apart
# Weights, the last of 1: fitted by benchmarks/depth_probability.py, whose docstring says on what.
OWN_WEIGHTS = np.array([2.89, 3.05, 1.43, -1.73, -3.51])
SEEN_WEIGHTS = np.array([0.26, 1.07, 0.39, -0.47, -0.64])


def own_features(
    rho: np.ndarray, gx: np.ndarray, gy: np.ndarray, agreement: np.ndarray, support: np.ndarray
) -> np.ndarray:
    """(h, w, 4): ZNCC with the best partners, planes around that say the same, neighbors on the plane, and nearer ones."""
    flat, _ = _around(rho, gx, gy, REACH, 1, TIGHT)
    _, nearer = _around(rho, gx, gy, REACH * STEP, STEP, NEARER)
    return np.stack([agreement, support, flat, nearer], -1)


def seen_features(own: np.ndarray, same: np.ndarray, through: np.ndarray) -> np.ndarray:
    """(h, w, 4): the own probability, its mean around, views that see the same surface, and that see through it."""
    mean = cv2.blur(own.astype(np.float32), (AVERAGED, AVERAGED), borderType=cv2.BORDER_REPLICATE)
    return np.stack([_log_odds(own), _log_odds(mean), np.log(same + FEW), np.log(through + FEW)], -1)


def logistic(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(...) float32 of features (..., F), of which the last weight is the constant."""
    return (1 / (1 + np.exp(-(features @ weights[:-1] + weights[-1])))).astype(np.float32)


def _log_odds(probability: np.ndarray) -> np.ndarray:
    return np.log((probability + UNSURE) / (1 + UNSURE - probability))


def _around(
    rho: np.ndarray, gx: np.ndarray, gy: np.ndarray, reach: int, step: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """(h, w) shares of the pixels around each that lie on its plane, up to a share of its inverse depth, and nearer."""
    height, width = rho.shape
    padded = np.pad(rho, reach, mode="edge")
    on, nearer = np.zeros(rho.shape, np.float32), np.zeros(rho.shape, np.float32)
    offsets = range(-reach, reach + 1, step)
    limit = tolerance * rho
    for dy in offsets:
        for dx in offsets:
            other = padded[reach + dy : reach + dy + height, reach + dx : reach + dx + width]
            off = other - (rho + gx * dx + gy * dy)
            on += np.abs(off) < limit
            nearer += off > limit
    others = len(offsets) ** 2 - 1
    return (on - 1) / others, nearer / others  # itself is on its plane
