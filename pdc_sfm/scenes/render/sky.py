"""The sky's color in any direction, by day and by night, with clouds."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.noise import blend, fractal, rgb, value_noise
from pdc_sfm.scenes.render.conditions import Conditions

_HILL = rgb("#5d7176")


def sky_radiance(directions: np.ndarray, conditions: Conditions, hills: bool = True) -> np.ndarray:
    """Light from unit directions (n, 3) pointing up and out: (n, 3) linear."""
    d = directions.astype(np.float32)
    up = np.maximum(d[:, 2], 0)
    zenith, horizon = (np.asarray(c, np.float32) for c in (conditions.zenith, conditions.horizon))
    sky = blend(horizon, zenith, 1 - np.exp(-up * 3.2))
    if conditions.sun_strength > 0:
        toward = np.clip(d @ conditions.sun_direction.astype(np.float32), 0, 1)
        glow = 0.35 * toward**8 + 1.2 * toward**200
        sky = sky + glow[:, None] * np.asarray(conditions.sun_color, np.float32) * conditions.sun_strength * 0.12
    sky = _clouds(sky, d, up, conditions)
    if hills:
        sky = _hills(sky, d, conditions)
    return sky


def _clouds(sky: np.ndarray, d: np.ndarray, up: np.ndarray, conditions: Conditions) -> np.ndarray:
    """A layer of clouds on a plane overhead, thinner towards the horizon where it dissolves into haze."""
    if conditions.clouds <= 0:
        return sky
    stretch = 1 / (up + 0.12)
    u, v = d[:, 0] * stretch, d[:, 1] * stretch
    seed = conditions.seed * 31 + 7
    pixel = np.full(len(u), 0.01, np.float32) * stretch
    swirl = value_noise(u * 0.9, v * 0.9, seed + 50) * 0.35
    shape = fractal(u + swirl, v - swirl, pixel, 1.9, 6, 0.55, seed)
    cover = np.clip((shape + 2.2 * conditions.clouds - 1.05) * 1.6, 0, 1)
    cover = cover * cover * (3 - 2 * cover)
    depth = fractal(u + 0.12, v + 0.1, pixel, 1.3, 4, 0.5, seed + 20)  # thick parts are gray underneath
    bright = np.asarray(conditions.cloud_color, np.float32)
    cloud = bright * (1.0 - 0.3 * np.clip(0.4 + 0.7 * (shape - depth), 0, 1))[:, None]
    return blend(sky, cloud, cover * np.clip(up * 6 + 0.35, 0, 1))


def _hills(sky: np.ndarray, d: np.ndarray, conditions: Conditions) -> np.ndarray:
    """Wooded hills far away close the horizon."""
    azimuth = np.arctan2(d[:, 1], d[:, 0])
    pixel = np.full(len(d), 0.002, np.float32)
    ridge = 0.055 + 0.03 * fractal(azimuth, azimuth * 0, pixel, 0.9, 7, 0.5, 3)
    below = np.clip((ridge - d[:, 2]) * 400, 0, 1)
    haze = np.asarray(conditions.horizon, np.float32)
    return blend(sky, 0.55 * haze + 0.45 * _HILL * haze.mean(), below)
