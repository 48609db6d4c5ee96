"""The probability that a depth is right, within 2 %, by what its image knows alone: as far as others believe it.

A logistic function, and its mean around the pixel where the picture is alike. What the image's partners say comes in after it
(probability_network.py).
"""

from __future__ import annotations

import cv2
import numpy as np

RIGHT = 0.02  # of its depth: no further off
REACH, TIGHT = 2, 0.003  # pixels: neighbors on a plane are counted in 5 x 5, up to this of inverse depth;
STEP, NEARER = 2, 0.02  # those that lie nearer by this, in 9 x 9: what is around a surface is taken for it
AVERAGED = 8  # pixels each way, over which belief is averaged
CONTRAST = 10.0  # gray levels: an edge of less is averaged over (as of patches)
UNSURE = 0.02  # probability: less is not told apart
# Weights, the last of 1: fitted by benchmarks/depth_probability.py, whose docstring says on what.
OWN_WEIGHTS = np.array([1.45, 3.64, 0.85, -1.65, -3.44])


def own_features(
    rho: np.ndarray, gx: np.ndarray, gy: np.ndarray, agreement: np.ndarray, support: np.ndarray
) -> np.ndarray:
    """(h, w, 4): ZNCC with the best partners, planes around that say the same, neighbors on the plane, and nearer ones."""
    flat, _ = _around(rho, gx, gy, REACH, 1, TIGHT)
    _, nearer = _around(rho, gx, gy, REACH * STEP, STEP, NEARER)
    return np.stack([agreement, support, flat, nearer], -1)


def belief(own: np.ndarray, gray: np.ndarray) -> np.ndarray:
    """(h, w) float32: the mean of the own probabilities around each pixel, of what is as bright as it is.

    What has no texture finds the depth of what is beside it: the sky that of the roof's edge, a lamp that of the wall
    behind it. The sky around is not believed, and that is told from the roof by the picture. It is a guided filter (He, Sun
    and Tang 2010): within a window, belief is linear in gray; the mean of what all windows say.
    """
    return np.clip(guided_mean(own, gray, AVERAGED), 0, 1)


def guided_mean(values: np.ndarray, gray: np.ndarray, reach: int) -> np.ndarray:
    """(h, w) float32: the mean over so many pixels each way, of what is as bright. Not within the limits of the values."""
    values, gray = values.astype(np.float32), gray.astype(np.float32)
    mean, mean_gray = _box(values, reach), _box(gray, reach)
    slope = (_box(values * gray, reach) - mean * mean_gray) / (_box(gray * gray, reach) - mean_gray**2 + CONTRAST**2)
    return _box(slope, reach) * gray + _box(mean - slope * mean_gray, reach)


def logistic(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(...) float32 of features (..., F), of which the last weight is the constant."""
    return (1 / (1 + np.exp(-(features @ weights[:-1] + weights[-1])))).astype(np.float32)


def log_odds(probability: np.ndarray) -> np.ndarray:
    """Of probabilities, 0 and 1 among them."""
    return np.log((probability + UNSURE) / (1 + UNSURE - probability))


def _box(values: np.ndarray, reach: int) -> np.ndarray:
    return cv2.blur(values, (2 * reach + 1, 2 * reach + 1), borderType=cv2.BORDER_REPLICATE)


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
