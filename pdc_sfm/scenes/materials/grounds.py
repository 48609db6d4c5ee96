"""Materials of the ground: setts, slabs, asphalt."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.noise import blend, fractal, hashed, patches, rgb, shown, stripes, value_noise
from pdc_sfm.scenes.materials.surface import Appearance, Spots

_SAND = rgb("#6b6256")
_DIRT = rgb("#3d3831")
_MOSS = rgb("#5a6138")


def setts(s: Spots) -> Appearance:
    """Granite setts in rows; where params[1] > 0 in rings of that spacing around the texture's origin. params: seed, ring."""
    u, v = s.u, s.v
    ring = s.params[:, 1] > 0
    if ring.any():
        radius, angle = np.hypot(u, v), np.arctan2(v, u)
        course = np.maximum(np.floor(radius / 0.12), 1)
        count = np.rint(2 * np.pi * course * 0.12 / 0.125)  # whole stones per ring
        u = np.where(ring, angle / (2 * np.pi) * count * 0.125, u)
        v = np.where(ring, radius, v)
    wobble = fractal(s.u, s.v, s.pixel, 0.16, 3, 0.6, 700) * 0.012
    u, v = u + wobble, v - wobble
    row = np.floor(v / 0.12)
    wide = np.where(ring, 0.125, 0.115 + 0.035 * hashed(row, 0, 701))
    across = u / wide + np.where(ring, 0.5 * (row % 2), hashed(row, 0, 702))
    column = np.floor(across)
    fu, fv = across - column - 0.5, v / 0.12 - row - 0.5
    fade = shown(0.115, s.pixel)
    tone, kind = hashed(column, row, 703), hashed(column, row, 704)
    joint = np.maximum(stripes(across * wide, wide, 0.018, s.pixel), stripes(v, 0.12, 0.018, s.pixel))
    corner = np.clip((fu * fu + fv * fv - 0.30) * 8, 0, 1) * fade
    joint = np.maximum(joint, corner)
    grain = fractal(s.u, s.v, s.pixel, 0.03, 7, 0.97, 710)
    coat = fractal(s.u, s.v, s.pixel, 4.0, 7, 0.62, 720)
    albedo = s.tint * (1 + 0.62 * (tone - 0.5) * fade + 0.3 * grain + 0.16 * coat)[:, None]
    warm = ((kind > 0.8) * 1.0 - (kind < 0.15) * 0.8) * fade
    albedo = albedo * (1 + 0.12 * warm[:, None] * np.array([1.2, 0.2, -0.9], np.float32))
    filling = blend(_SAND, _MOSS, np.clip(coat * 1.5, 0, 1)) * (0.75 + 0.3 * grain)[:, None]
    albedo = blend(albedo, filling, 0.9 * joint)
    albedo = _spots_and_spills(albedo, s, coat)
    slope = np.stack([-0.55 * fu, -0.55 * fv], 1) * (fade * (1 - joint))[:, None]
    return Appearance(albedo, slope.astype(np.float32), cavity=1 - 0.4 * joint)


def slabs(s: Spots) -> Appearance:
    """Pavement of large slabs. params: seed, slab length, slab width."""
    length, width = np.maximum(s.params[:, 1], 0.3), np.maximum(s.params[:, 2], 0.3)
    row = np.floor(s.v / width)
    across = s.u / length + hashed(row, 0, 750)
    column = np.floor(across)
    joint = np.maximum(stripes(across * length, length, 0.012, s.pixel), stripes(s.v, width, 0.012, s.pixel))
    tone = hashed(column, row, 751 + (s.params[:, 0] * 50).astype(np.int64))
    fade = shown(0.3, s.pixel)
    grain = fractal(s.u, s.v, s.pixel, 0.04, 8, 0.97, 760)
    coat = fractal(s.u, s.v, s.pixel, 2.5, 7, 0.62, 770)
    albedo = s.tint * (1 + 0.3 * (tone - 0.5) * fade + 0.26 * grain + 0.18 * coat)[:, None]
    albedo = blend(albedo, _DIRT, 0.8 * joint)
    albedo = _spots_and_spills(albedo, s, coat)
    tilt = (np.stack([hashed(column, row, 755), hashed(column, row, 756)], 1) - 0.5) * (0.06 * fade)[:, None]
    return Appearance(albedo, tilt, cavity=1 - 0.3 * joint)


def road(s: Spots) -> Appearance:
    """Worn asphalt with patches and repaired seams. params: seed."""
    grain = fractal(s.u, s.v, s.pixel, 0.02, 6, 0.95, 780)
    coat = fractal(s.u, s.v, s.pixel, 3.0, 7, 0.62, 785)
    patch = (hashed(np.floor(s.u / 2.3), np.floor(s.v / 3.1), 790) > 0.8) * 0.25
    seam = np.clip(1 - np.abs(value_noise(s.u / 1.9, s.v / 2.6, 791)) / (0.006 + 0.4 * s.pixel), 0, 1) * 0.5
    seam *= np.minimum(0.012 / (0.006 + 0.4 * s.pixel), 1)
    albedo = s.tint * ((1 + 0.25 * grain + 0.2 * coat - patch) * (1 - seam))[:, None]
    return Appearance(_spots_and_spills(albedo, s, coat))


def _spots_and_spills(albedo: np.ndarray, s: Spots, coat: np.ndarray) -> np.ndarray:
    """What gathers on any pavement: dark spills, chewing gum, fallen leaves."""
    spill = np.clip(fractal(s.u + 50, s.v - 20, s.pixel, 1.8, 6, 0.6, 800) * 1.6 - 0.75, 0, 0.6)
    worn = 0.25 * patches(s.u, s.v, s.pixel, 0.9, 0.5, 830) + 0.25 * patches(s.u, s.v, s.pixel, 0.35, 0.35, 834)
    albedo = albedo * ((1 - spill) * (1 + worn))[:, None]
    for size, chance, seed, colors in (
        (0.22, 0.25, 810, ("#2c2a27", "#cfcac0")),
        (0.55, 0.35, 820, ("#6f5536", "#8f7f50")),
    ):
        iu, iv = np.floor(s.u / size), np.floor(s.v / size)
        cu, cv = 0.25 + 0.5 * hashed(iu, iv, seed), 0.25 + 0.5 * hashed(iu, iv, seed + 1)
        turn = 6.3 * hashed(iu, iv, seed + 2)
        du, dv = (s.u / size - iu - cu) * size, (s.v / size - iv - cv) * size
        x, y = np.cos(turn) * du + np.sin(turn) * dv, np.cos(turn) * dv - np.sin(turn) * du
        radius = 0.012 + 0.03 * hashed(iu, iv, seed + 3)
        inside = np.clip((radius - np.hypot(x, y * 1.7)) / np.maximum(s.pixel, 1e-4) + 0.5, 0, 1)
        inside *= (hashed(iu, iv, seed + 4) < chance) * np.minimum(radius / s.pixel, 1)
        tone = hashed(iu, iv, seed + 5)[:, None]
        albedo = blend(albedo, rgb(colors[0]) * (1 - tone) + rgb(colors[1]) * tone, 0.8 * inside)
    return albedo
