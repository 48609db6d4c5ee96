"""Local elastic perturbations of the reference (Sec. 3.4, appendix B): e = sum_i E * S_i.

They are hard to see in homogeneous regions, where the network thereby learns to be uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from pdc_sfm.settings import require
from pdc_sfm.synthetic.warps import ImageFrame


@dataclass(frozen=True)
class PerturbationSettings:
    """Lengths are shares of the image's shorter side."""

    regions: tuple[int, int] = (2, 8)  # least and most local perturbations in a pair
    region: tuple[float, float] = (0.03, 0.12)  # standard deviation of a mask
    length: tuple[float, float] = (0.02, 0.08)  # over which the elastic field varies
    amplitude: tuple[float, float] = (0.002, 0.03)  # largest displacement
    max_slope: float = 0.45  # of the residual; below 0.5 x -> x + e(x) is one-to-one

    def __post_init__(self) -> None:
        for name in ("regions", "region", "length", "amplitude"):
            low, high = getattr(self, name)
            require(0 <= low <= high, f"elastic.{name}={low},{high}: two values, the smaller first, at least 0")
        require(self.length[0] > 0 and self.region[0] > 0, "elastic.length and elastic.region must be above 0")
        require(0 < self.max_slope < 0.5, "elastic.max_slope must lie in 0..0.5")


def random_residual(frame: ImageFrame, settings: PerturbationSettings, rng: np.random.Generator) -> np.ndarray:
    """The residual e in pixels, (H, W, 2) float32, so smooth that x + e(x) never folds."""
    side = min(frame.height, frame.width)
    masks = np.zeros((frame.height, frame.width), np.float32)
    for _ in range(rng.integers(settings.regions[0], settings.regions[1] + 1)):
        center = rng.uniform(0, (frame.width, frame.height))
        masks += soft_mask(frame, center, side * rng.uniform(*settings.region))
    residual = elastic_field(frame, side * rng.uniform(*settings.length), rng) * masks[..., None]
    largest = float(np.abs(residual).max())
    if largest == 0:
        return residual
    residual *= side * rng.uniform(*settings.amplitude) / largest
    slope = max(float(np.abs(np.diff(residual, axis=axis)).max()) for axis in (0, 1))
    return residual * min(1.0, settings.max_slope / slope)


def soft_mask(frame: ImageFrame, center: np.ndarray, deviation: float) -> np.ndarray:
    """A Gaussian scaled to 2 and clipped to 1: (H, W) float32, one in the middle, falling smoothly to zero."""
    x = np.exp(-((np.arange(frame.width, dtype=np.float32) - center[0]) ** 2) / (2 * deviation**2))
    y = np.exp(-((np.arange(frame.height, dtype=np.float32) - center[1]) ** 2) / (2 * deviation**2))
    return np.minimum(np.outer(2 * y, x), 1).astype(np.float32)


def elastic_field(frame: ImageFrame, length: float, rng: np.random.Generator) -> np.ndarray:
    """Smoothed uniform noise (Simard et al. 2003), drawn on a grid of `length` pixels: (H, W, 2) float32."""
    length = max(length, 1.0)
    size = (int(frame.width / length) + 4, int(frame.height / length) + 4)
    noise = rng.uniform(-1, 1, (size[1], size[0], 2)).astype(np.float32)
    whole = (round(size[0] * length), round(size[1] * length))
    field = cv2.resize(cv2.GaussianBlur(noise, (3, 3), 0.8), whole, interpolation=cv2.INTER_CUBIC)
    return np.ascontiguousarray(field[: frame.height, : frame.width])
