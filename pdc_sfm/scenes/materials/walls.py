"""Materials of walls and roofs: plaster, brick, cut stone, beams, tiles."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.noise import blend, fractal, hashed, patches, rgb, shown, step, stripes, value_noise
from pdc_sfm.scenes.materials.surface import Appearance, Spots

Amount = float | np.ndarray  # one for all spots, or each its own

_DIRT = rgb("#4a4338")
_UNDERCOAT = rgb("#8f8474")
_MOSS = rgb("#5c6340")
_MORTAR = rgb("#a89d8c")


def plaster(s: Spots) -> Appearance:
    """Painted plaster: uneven coats, rain streaks, splashes near the ground, cracks, lost patches. params: seed; _drips."""
    seed = 100
    u, v = s.u + s.params[:, 0] * 37.7, s.v
    coat = fractal(u, v, s.pixel, 2.6, 7, 0.66, seed)
    wash = fractal(u + 4, v, s.pixel, 6.0, 4, 0.6, seed + 5)
    grain = fractal(u, v, s.pixel, 0.045, 8, 0.97, seed + 10)
    mottle = fractal(u - 3, v, s.pixel, 0.5, 6, 0.85, seed + 15)
    spots = 0.30 * patches(u, v, s.pixel, 0.8, 0.35, seed + 20) + 0.30 * patches(u, v, s.pixel, 0.33, 0.3, seed + 24)
    albedo = s.tint * (1 + 0.15 * coat + 0.24 * grain + 0.08 * wash + 0.13 * mottle + spots)[:, None]
    albedo *= 1 + 0.05 * wash[:, None] * np.array([1.0, 0.2, -1.3], np.float32)
    streak = value_noise(u / 0.13, v / 2.8, seed + 30) * 0.6 + value_noise(u / 0.05, v / 1.3, seed + 31) * 0.4
    streak = np.clip(streak * shown(0.13, s.pixel) - 0.1, 0, 1) * np.clip(0.5 + coat, 0, 1)
    splash = np.exp(-np.maximum(s.height, 0) / 0.45) * np.clip(0.7 + 0.8 * coat + 0.5 * grain, 0, 1.3)
    albedo = blend(albedo, _DIRT, np.clip(0.5 * streak + 0.5 * splash + 0.55 * _drips(s), 0, 0.8))
    patch = fractal(u + 9, v, s.pixel, 1.4, 7, 0.58, seed + 40)
    lost = step(patch - 0.88, 0.05 + s.pixel * 0.8)
    albedo = blend(albedo, _UNDERCOAT * (1 + 0.2 * grain)[:, None], 0.85 * lost)
    rim = np.clip(1 - np.abs(patch - 0.88) / (0.03 + s.pixel), 0, 1) * shown(0.03, s.pixel)
    crack = _cracks(u, v, s.pixel, seed + 60)
    albedo = albedo * (1 - 0.45 * np.maximum(crack, 0.6 * rim))[:, None]
    return Appearance(albedo, _grain_slope(u, v, s.pixel, 0.02, 0.10, seed + 80))


def brick(s: Spots) -> Appearance:
    """Running bond. params: seed, length, height of a brick."""
    length, height, joint = 0.25, 0.077, 0.011
    u = s.u + 0.004 * value_noise(s.u * 9, s.v * 9, 5)
    row = np.floor(s.v / height)
    across = u / length + 0.5 * (row % 2)
    column = np.floor(across)
    seed = 200 + (s.params[:, 0] * 97).astype(np.int64)
    mortar = np.maximum(stripes(s.v, height, joint, s.pixel), stripes(across * length, length, joint, s.pixel))
    tone = hashed(column, row, seed)
    fade = shown(0.1, s.pixel)
    burnt = (hashed(column, row, seed + 1) > 0.88) * fade
    grain = fractal(s.u, s.v, s.pixel, 0.06, 8, 0.97, 210)
    coat = fractal(s.u + s.params[:, 0] * 11, s.v, s.pixel, 3.0, 6, 0.6, 220)
    spots = 0.35 * patches(s.u, s.v, s.pixel, 0.6, 0.4, 240) + 0.3 * patches(s.u, s.v, s.pixel, 0.27, 0.4, 244)
    face = s.tint * (1 + (tone - 0.5) * 0.55 * fade + 0.28 * grain + 0.16 * coat + spots)[:, None]
    face = blend(face, s.tint * np.float32(0.35), 0.75 * burnt)
    face[:, 0] *= 1 + 0.14 * (hashed(column, row, seed + 2) - 0.5) * fade
    albedo = blend(face, _MORTAR * (1 + 0.15 * grain + 0.2 * coat)[:, None], 0.85 * mortar)
    soot = np.clip(coat * 0.7 - 0.1, 0, 0.5) + 0.4 * np.exp(-np.maximum(s.height, 0) / 0.4) + 0.5 * _drips(s)
    albedo = blend(albedo, _DIRT, np.clip(soot, 0, 0.6))
    edge = _joint_slope(across * length, s.v, length, height, joint, s.pixel, 0.5)
    return Appearance(albedo, edge + _grain_slope(s.u, s.v, s.pixel, 0.012, 0.12, 230), cavity=1 - 0.25 * mortar)


def ashlar(s: Spots) -> Appearance:
    """Courses of cut stone. params: seed, block length, block height."""
    length, height, joint = np.maximum(s.params[:, 1], 0.3), np.maximum(s.params[:, 2], 0.15), 0.012
    row = np.floor(s.v / height)
    across = s.u / length + 0.5 * (row % 2) + 0.13 * hashed(row, 0, 6)
    column = np.floor(across)
    joint_mask = np.maximum(stripes(s.v, height, joint, s.pixel), stripes(across * length, length, joint, s.pixel))
    seed = 300 + (s.params[:, 0] * 91).astype(np.int64)
    tone, warm = hashed(column, row, seed), hashed(column, row, seed + 1)
    fade = shown(0.3, s.pixel)
    stone = _stone_tone(s, s.u + 3.1 * tone, s.v)
    albedo = s.tint * ((1 + 0.5 * (tone - 0.5) * fade) * stone)[:, None]
    albedo *= 1 + 0.10 * ((warm - 0.5) * fade)[:, None] * np.array([1.0, 0.1, -1.2], np.float32)
    soot = np.clip(0.45 * fractal(s.u, s.v, s.pixel, 5.0, 5, 0.6, 340), 0, 0.4) + 0.5 * _drips(s)
    soot += 0.3 * np.exp(-np.maximum(s.height, 0) / 0.5)
    albedo = blend(albedo, _DIRT, np.clip(np.maximum(0.65 * joint_mask, soot), 0, 0.7))
    slope = _joint_slope(across * length, s.v, length, height, joint, s.pixel, 0.45)
    return Appearance(albedo, slope + _grain_slope(s.u, s.v, s.pixel, 0.03, 0.16, 330), cavity=1 - 0.3 * joint_mask)


def stone(s: Spots) -> Appearance:
    """Plain dressed stone for sills, cornices, kerbs and the fountain. params: seed."""
    albedo = s.tint * _stone_tone(s, s.u + s.params[:, 0] * 17, s.v + s.params[:, 0] * 5)[:, None]
    splash = np.exp(-np.maximum(s.height, 0) / 0.3) * 0.35
    return Appearance(blend(albedo, _DIRT, splash), _grain_slope(s.u, s.v, s.pixel, 0.03, 0.16, 430))


def timber(s: Spots) -> Appearance:
    """Old beams. params: seed, 1 if the grain runs along v."""
    upright = s.params[:, 1] > 0.5
    along, across = np.where(upright, s.v, s.u), np.where(upright, s.u, s.v) + s.params[:, 0]
    grain = fractal(along / 14, across, s.pixel, 0.05, 8, 0.9, 500)
    wear = fractal(along, across, s.pixel, 0.7, 5, 0.6, 510)
    split = np.clip(fractal(along / 20, across, s.pixel, 0.03, 3, 0.7, 520) - 0.75, 0, 0.4) * 2
    albedo = s.tint * ((1 + 0.32 * grain + 0.22 * wear) * (1 - split))[:, None]
    return Appearance(albedo, _grain_slope(s.u, s.v, s.pixel, 0.02, 0.2, 530))


def tiles(s: Spots) -> Appearance:
    """Clay roof tiles, u along the eaves, v up the slope. params: seed."""
    wide, high = 0.21, 0.30
    row = np.floor(s.v / high)
    across = s.u / wide + 0.5 * (row % 2)
    column = np.floor(across)
    fu, fv = across - column, s.v / high - row
    fade = shown(0.3, s.pixel)
    seed = 600 + (s.params[:, 0] * 89).astype(np.int64)
    tone = hashed(column, row, seed)
    coat = fractal(s.u + 7 * s.params[:, 0], s.v, s.pixel, 2.4, 6, 0.65, 610)
    grain = fractal(s.u, s.v, s.pixel, 0.07, 8, 0.95, 620)
    albedo = s.tint * (1 + 0.6 * (tone - 0.5) * fade + 0.2 * coat + 0.25 * grain)[:, None]
    albedo *= (1 + 0.4 * patches(s.u, s.v, s.pixel, 0.9, 0.4, 630) + 0.35 * patches(s.u, s.v, s.pixel, 0.4, 0.3, 634))[
        :, None
    ]
    new = (hashed(column, row, seed + 3) > 0.97) * fade
    albedo = blend(albedo, s.tint * np.float32(1.7), 0.7 * new)
    albedo = blend(albedo, _MOSS, np.clip(coat * 0.9 + 0.3 * grain - 0.35, 0, 0.75))
    lap = np.clip(1 - fv / 0.12, 0, 1) * fade  # the lower edge of the tile above throws a shadow on this one
    gap = stripes(across * wide, wide, 0.014, s.pixel)
    albedo = albedo * (1 - 0.55 * np.maximum(lap, 0.8 * gap))[:, None]
    slope = np.stack([-0.7 * np.cos(2 * np.pi * fu) * fade, -0.12 * np.ones_like(fu)], 1)
    return Appearance(albedo, slope.astype(np.float32))


def _drips(s: Spots) -> np.ndarray:
    """Rain marks under window sills. params[3:7]: window pitch, half width, height of the lowest sill, storey height."""
    pitch, half, sill, storey = (s.params[:, k] for k in (3, 4, 5, 6))
    known = pitch > 0
    pitch, storey = np.where(known, pitch, 1.0), np.where(known, storey, 1.0)
    beside = np.abs(s.u - np.floor(s.u / pitch) * pitch - pitch / 2) - half
    below = (sill - s.v) - np.floor((sill - s.v) / storey) * storey
    seed = s.params[:, 0] * 53
    edge = np.exp(-(((beside - 0.03) / 0.07) ** 2)) + 0.45 * (beside < 0.1)
    ragged = 0.6 + 0.5 * value_noise(s.u / 0.06 + seed, s.v / 1.6, 440) * shown(0.06, s.pixel)
    reach = 0.35 + 0.5 * hashed(np.floor(s.u / pitch), np.floor((sill - s.v) / storey), 441)
    return known * (s.v > sill - storey * 0.6) * edge * np.clip(ragged, 0, 1) * np.exp(-below / reach)


def _stone_tone(s: Spots, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    coat = fractal(u, v, s.pixel, 1.1, 7, 0.78, 410)
    grain = fractal(u, v, s.pixel, 0.03, 7, 0.97, 420)
    stains = patches(u, v, s.pixel, 0.45, 0.35, 415) + patches(u, v, s.pixel, 0.2, 0.35, 417)
    pits = np.clip(value_noise(u / 0.018, v / 0.018, 425) - 0.55, 0, 1) * shown(0.03, s.pixel)
    return (1 + 0.24 * coat + 0.30 * grain + 0.26 * stains) * (1 - 0.7 * pits)


def _cracks(u: np.ndarray, v: np.ndarray, pixel: np.ndarray, seed: int) -> np.ndarray:
    """Thin lines where a slow noise passes through zero, only in some places."""
    bend = fractal(u, v, pixel, 0.5, 5, 0.6, seed)
    near = value_noise(u / 1.7 + 0.5 * bend, v / 2.3 + 0.4 * bend, seed + 7)
    some = np.clip(value_noise(u / 3.1, v / 2.7, seed + 8) * 3 - 0.9, 0, 1)
    width = 0.002 + 0.4 * pixel
    return some * np.clip(1 - np.abs(near) * 1.2 / width, 0, 1) * np.minimum(0.004 / width, 1)


def _grain_slope(u: np.ndarray, v: np.ndarray, pixel: np.ndarray, size: float, depth: float, seed: int) -> np.ndarray:
    """Slopes of a rough surface: two independent noises, which is all that shading can tell."""
    slope = np.empty((len(u), 2), np.float32)
    for axis in (0, 1):
        slope[:, axis] = depth * fractal(u, v, pixel, size * 2, 4, 0.7, seed + 31 * axis)
    return slope


def _joint_slope(
    u: np.ndarray,
    v: np.ndarray,
    length: Amount,
    height: Amount,
    joint: float,
    pixel: np.ndarray,
    depth: float,
) -> np.ndarray:
    """Faces of blocks lean towards their joints within about a joint's width."""
    reach = joint * 1.3
    slope = np.empty((len(u), 2), np.float32)
    for axis, (x, period) in enumerate(((u, length), (v, height))):
        offset = x / period - np.rint(x / period)
        near = np.clip(1 - np.abs(offset * period) / reach, 0, 1)
        slope[:, axis] = depth * np.sign(offset) * near * shown(joint * 2, pixel)
    return slope
