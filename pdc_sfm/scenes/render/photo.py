"""From light to picture: exposure, glare, lens, sensor noise, tone curve."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.render.conditions import Conditions


def develop(light: np.ndarray, conditions: Conditions, seed: int) -> np.ndarray:
    """Linear light (H, W, 3) -> sRGB (H, W, 3) uint8, as a small camera would record it."""
    import cv2

    height, width = light.shape[:2]
    image = (light * np.float32(conditions.exposure * _metered(light, conditions))).astype(np.float32)
    highlights = np.maximum(image - 1.0, 0)
    for share, size in ((0.10, width / 160), (0.05, width / 32)):  # glare around what is too bright
        image = image + share * cv2.GaussianBlur(np.minimum(highlights, 6), (0, 0), size)
    image = image * _vignette(height, width, conditions.vignette) * np.asarray(conditions.white_balance, np.float32)
    if conditions.blur > 0:
        image = cv2.GaussianBlur(image, (0, 0), conditions.blur)
    image = image + _sensor_noise(image, conditions.noise, np.random.default_rng(seed))
    return np.rint(_tone(np.maximum(image, 0)) * 255).astype(np.uint8)


def _metered(light: np.ndarray, conditions: Conditions) -> float:
    """What the camera's meter adds: it brings the median towards a mid gray, within a stop."""
    median = float(np.median(light @ np.array([0.21, 0.72, 0.07], np.float32))) * conditions.exposure
    return float(np.clip((0.21 / max(median, 1e-6)) ** conditions.metering, 0.5, 2.0))


def _vignette(height: int, width: int, loss: float) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    radius = ((x - (width - 1) / 2) ** 2 + (y - (height - 1) / 2) ** 2) / ((width / 2) ** 2 + (height / 2) ** 2)
    return (1 - np.float32(loss) * radius)[..., None]


def _sensor_noise(image: np.ndarray, level: float, random: np.random.Generator) -> np.ndarray:
    """Photon noise grows with the root of the light; the camera's smoothing leaves color in blotches."""
    import cv2

    if level <= 0:
        return np.zeros_like(image)
    grain = random.standard_normal((*image.shape[:2], 1), np.float32)
    color = cv2.GaussianBlur(random.standard_normal(image.shape, np.float32), (0, 0), 1.2) * 2.0
    grain = cv2.GaussianBlur(grain, (0, 0), 0.55)[..., None] * 1.6
    scale = level * np.sqrt(np.clip(image, 0, 1.5) / 0.2 + 0.08)
    return (grain * 0.85 + color * 0.5) * scale


def _tone(image: np.ndarray) -> np.ndarray:
    """sRGB with a gentle toe and a shoulder that keeps bright walls and clouds from clipping hard."""
    shoulder = np.float32(0.72)
    excess = np.maximum(image - shoulder, 0)
    image = np.minimum(image, shoulder) + (1 - shoulder) * (1 - np.exp(-excess / (1 - shoulder)))
    image = image * (0.88 + 0.12 * np.clip(image * 4, 0, 1))
    return np.clip(
        np.where(image <= 0.0031308, image * 12.92, 1.055 * np.maximum(image, 1e-6) ** (1 / 2.4) - 0.055), 0, 1
    )
