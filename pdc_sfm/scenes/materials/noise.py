"""Procedural texture from hashed lattices: the same everywhere on every machine, sharp at any distance.

Every function takes the width of a pixel on the surface (`pixel`, metres) and leaves out detail the pixel cannot hold.
"""

from __future__ import annotations

import numpy as np

_X, _Y, _S = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77), np.uint32(0xC2B2AE3D)
_MIX = np.uint32(0x27D4EB2F)


def hashed(x: np.ndarray, y: np.ndarray | int = 0, seed: np.ndarray | int = 0) -> np.ndarray:
    """Uniform float32 in [0, 1) for whole numbers."""
    seed = np.asarray(seed).astype(np.int64).astype(np.uint32)
    with np.errstate(over="ignore"):
        key = _lattice(x) * _X + _lattice(y) * _Y + seed * _S
    return _scramble(key)


def value_noise(u: np.ndarray, v: np.ndarray, seed: np.ndarray | int = 0) -> np.ndarray:
    """Smooth noise in [-1, 1] with one lattice cell per unit."""
    iu, iv = np.floor(u), np.floor(v)
    fu, fv = u - iu, v - iv
    fu, fv = fu * fu * (3 - 2 * fu), fv * fv * (3 - 2 * fv)
    seed = np.asarray(seed).astype(np.int64).astype(np.uint32)
    with np.errstate(over="ignore"):
        x0, y0 = _lattice(iu) * _X, _lattice(iv) * _Y + seed * _S
        x1, y1 = x0 + _X, y0 + _Y
        a, b, c, d = _scramble(x0 + y0), _scramble(x1 + y0), _scramble(x0 + y1), _scramble(x1 + y1)
    low, high = a + (b - a) * fu, c + (d - c) * fu
    return 2 * (low + (high - low) * fv) - 1


def fractal(
    u: np.ndarray, v: np.ndarray, pixel: np.ndarray, largest: float, octaves: int, gain: float = 0.6, seed: int = 0
) -> np.ndarray:
    """Sum of noise octaves from the wavelength `largest` (metres) down by halves, fading out at the pixel; about [-1, 1]."""
    total = np.zeros(np.shape(u), np.float32)
    weight, wavelength, norm = 1.0, largest, 0.0
    cos, sin = np.float32(0.8), np.float32(0.6)  # each octave is turned, so that no lattice shows through
    for octave in range(octaves):
        norm += weight * weight
        fade = shown(wavelength, pixel)
        where = np.flatnonzero(fade > 0)
        if len(where) == 0:
            break
        if len(where) == len(total):
            total += weight * fade * value_noise(u / wavelength, v / wavelength, seed + octave)
        else:
            total[where] += (
                weight * fade[where] * value_noise(u[where] / wavelength, v[where] / wavelength, seed + octave)
            )
        u, v = cos * u - sin * v, sin * u + cos * v
        weight, wavelength = weight * gain, wavelength / 2
    return total / np.float32(np.sqrt(norm))


def patches(u: np.ndarray, v: np.ndarray, pixel: np.ndarray, size: float, share: float, seed: int) -> np.ndarray:
    """Ragged spots with clear edges, up to `size` wide, in a share of all places: their tone in [-1, 1], 0 between."""
    wide = np.maximum(pixel, size / 40)
    bend = fractal(u, v, wide, size * 0.9, 4, 0.7, seed) * (0.35 * size)
    u, v = u + bend, v + fractal(v, u, wide, size * 0.9, 4, 0.7, seed + 3) * (0.35 * size)
    iu, iv = np.floor(u / size), np.floor(v / size)
    radius = (0.15 + 0.33 * hashed(iu, iv, seed + 5)) * size
    away = np.hypot(u - (iu + 0.5) * size, (v - (iv + 0.5) * size) * (0.7 + 0.6 * hashed(iu, iv, seed + 6)))
    inside = step(radius - away, wide * 1.5) * shown(size * 0.5, pixel)
    return inside * (hashed(iu, iv, seed + 7) < share) * (2 * hashed(iu, iv, seed + 8) - 1)


def shown(wavelength: float, pixel: np.ndarray) -> np.ndarray:
    """How much of a pattern of this wavelength a pixel resolves: 1 above four pixels, 0 below one and a half."""
    return np.clip((wavelength / pixel - 1.5) / 2.5, 0, 1).astype(np.float32)


def stripes(x: np.ndarray, period: float | np.ndarray, width: float | np.ndarray, pixel: np.ndarray) -> np.ndarray:
    """Coverage in [0, 1] of stripes [k period - width/2, k period + width/2], averaged over the pixel."""

    def area(t: np.ndarray) -> np.ndarray:
        cell = np.floor(t / period)
        return cell * width + np.clip(t - cell * period, 0, width)

    pixel = np.maximum(pixel, 1e-5)
    start = x + np.multiply(width, 0.5) - 0.5 * pixel
    return np.clip((area(start + pixel) - area(start)) / pixel, 0, 1).astype(np.float32)


def step(x: np.ndarray, pixel: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 0, blended over one pixel."""
    return np.clip(x / np.maximum(pixel, 1e-5) + 0.5, 0, 1).astype(np.float32)


def blend(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Colors a -> b, (n, 3) or (3,), by the share t (n,)."""
    return a + (b - a) * t[:, None]


def rgb(code: str) -> np.ndarray:
    """'#c8b08a' as painters write it (sRGB) -> linear float32 (3,)."""
    values = np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4).astype(np.float32)


def _lattice(x: np.ndarray | int) -> np.ndarray:
    return np.asarray(x).astype(np.int32).astype(np.uint32)


def _scramble(key: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        key = key ^ (key >> np.uint32(15))
        key = key * _MIX
        key = key ^ (key >> np.uint32(13))
        key = key * _X
        key = key ^ (key >> np.uint32(16))
    return (key >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
