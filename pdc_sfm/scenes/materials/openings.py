"""Materials that fill openings: windows, shop windows, doors, shutters. Texture (0, 0) is the lower left corner."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.noise import blend, fractal, hashed, rgb, shown, step, stripes, value_noise
from pdc_sfm.scenes.materials.surface import Appearance, Spots

_ROOM = rgb("#1d1b1a")
_NET = rgb("#cfccc2")
_GOODS = np.stack(
    [
        rgb(code)
        for code in ("#8c6a3f", "#b8452f", "#d8cdb4", "#3f5a6e", "#6b7a4a", "#c79a4a", "#2e2c2b", "#9a9a94", "#7a3a4a")
    ]
)
_LAMP = np.array([1.0, 0.62, 0.27], np.float32)
_TUBE = np.array([0.85, 0.95, 1.0], np.float32)


def window(s: Spots) -> Appearance:
    """A casement window. params: width, height, seed, panes across, panes up. tint: the frame's paint."""
    width, height, seed = s.params[:, 0], s.params[:, 1], (s.params[:, 2] * 1000).astype(np.int64)
    across, up = np.maximum(s.params[:, 3], 1), np.maximum(s.params[:, 4], 1)
    border = _border(s.u, s.v, width, height, 0.07, s.pixel)
    post = step(0.035 - np.abs(s.u - width / 2), s.pixel) * (across > 1)
    bars = np.maximum(_bars(s.u, width, across, 0.028, s.pixel), _bars(s.v, height, up, 0.028, s.pixel))
    transom = step(0.04 - np.abs(s.v - height * 0.68), s.pixel) * (up > 2)
    frame = np.clip(np.maximum(np.maximum(border, post), np.maximum(bars, transom)), 0, 1)
    room, lit = _room(s, width, height, seed)
    wear = fractal(s.u + s.params[:, 2], s.v, s.pixel, 0.3, 6, 0.7, 900)
    groove = _edge_lines(s, width, height)
    paint = s.tint * ((1 + 0.14 * wear) * (1 - 0.5 * groove))[:, None]
    shade = 1 - 0.45 * np.clip(1 - (height - s.v) / 0.35, 0, 1)  # the lintel keeps the light off the top
    glow = room * (lit * (1 - frame))[:, None] if s.night else None
    pane = hashed(np.floor(s.u / width * across), np.floor(s.v / height * up), seed)
    tilt = np.stack([pane - 0.5, hashed(np.floor(s.u / width * across), 1, seed + 1) - 0.5], 1) * 0.05
    ripple = np.stack([value_noise(s.u * 5, s.v * 5, 905), value_noise(s.u * 5, s.v * 5, 906)], 1) * 0.006
    slope = (tilt + ripple) * (1 - frame)[:, None]
    albedo = blend(room * 0.55 if not s.night else room * 0.3, paint, frame) * shade[:, None]
    return Appearance(albedo, slope.astype(np.float32), glow, mirror=0.09 * (1 - frame))


def _room(s: Spots, width: np.ndarray, height: np.ndarray, seed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is seen behind the glass: darkness, curtains, a blind, things on the sill; and its light at night."""
    kind, drawn = hashed(seed, 1, 910), hashed(seed, 2, 910)
    folds = 0.5 + 0.5 * np.sin(s.u * (38 + 30 * drawn) + 3 * value_noise(s.u * 4, s.v * 0.7, 911))
    cloth = _NET * (0.55 + 0.45 * folds * shown(0.1, s.pixel))[:, None]
    hue = np.stack([hashed(seed, k, 912) for k in (3, 4, 5)], 1)
    cloth = blend(cloth, cloth * (0.35 + 0.65 * hue), (hashed(seed, 6, 912) > 0.6) * 1.0)
    side = np.minimum(s.u, width - s.u) / width
    open_to = 0.13 + 0.2 * drawn + 0.02 * np.sin(s.v * 5 + 6 * kind)
    curtain = step((open_to - side) * width, s.pixel) * (kind > 0.35)
    net = (kind > 0.7) * step(s.v - height * (0.35 * (drawn > 0.6)), s.pixel) * 0.7
    blind = (kind < 0.16) * step(s.v - height * (0.35 + 0.5 * drawn), s.pixel)
    depth = fractal(s.u + 5 * kind, s.v, s.pixel, 0.9, 4, 0.6, 915)
    room = _ROOM * (1 + 0.6 * depth)[:, None]
    pot_u = s.u - width * (0.25 + 0.5 * drawn)
    leafy = 0.16 + 0.10 * fractal(s.u + 3 * drawn, s.v, s.pixel, 0.16, 4, 0.8, 917)
    plant = step(leafy - np.hypot(pot_u, s.v - 0.24), s.pixel) * (hashed(seed, 8, 910) > 0.55)
    room = blend(room, rgb("#3d5230") * (1 + 0.5 * depth)[:, None], plant * 0.9)
    room = blend(room, cloth, np.maximum(curtain, net))
    slats = 0.8 + 0.2 * stripes(s.v, 0.05, 0.025, s.pixel)
    room = blend(room, _NET * slats[:, None], blind)
    lit = (hashed(seed, 9, 910) > 0.72) * (0.5 + 0.8 * hashed(seed, 10, 910))
    if s.night:
        lamp = _LAMP * (1 - (hashed(seed, 11, 910) > 0.8))[:, None] + _TUBE * (hashed(seed, 11, 910) > 0.8)[:, None]
        back = 0.35 + 0.65 * np.exp(-((s.u - width * drawn) ** 2 + (s.v - height * 0.8) ** 2) / 0.5)
        wall = (0.30 + 0.1 * depth) * (1 - curtain) * (1 - net) * (1 - blind)
        room = (room * 1.3 + wall[:, None]) * lamp * back[:, None] * 1.6
    return room.astype(np.float32), lit.astype(np.float32)


def shop(s: Spots) -> Appearance:
    """A shop window: goods on shelves behind glass. params: width, height, seed, panes across. tint: the frame."""
    width, height, seed = s.params[:, 0], s.params[:, 1], (s.params[:, 2] * 1000).astype(np.int64)
    border = _border(s.u, s.v, width, height, 0.09, s.pixel)
    bars = _bars(s.u, width, np.maximum(s.params[:, 3], 1), 0.05, s.pixel)
    frame = np.maximum(np.maximum(border, bars), step(0.03 - np.abs(s.v - height * 0.8), s.pixel))
    deep = fractal(s.u + 3 * s.params[:, 2], s.v, s.pixel, 1.2, 4, 0.6, 930)
    goods = blend(_ROOM, rgb("#5a4a3a"), np.clip(0.35 + 0.25 * deep + 0.4 * s.v / height, 0, 1))
    for layer, (size, floor) in enumerate(
        ((0.34, 0.12), (0.22, 0.62), (0.16, 1.05))
    ):  # goods on the floor and on two shelves
        shift = hashed(seed, layer, 931)
        column = np.floor(s.u / size + shift)
        tall = size * (0.55 + 0.85 * hashed(column, layer, seed))
        broad = size * (0.2 + 0.26 * hashed(column, layer + 2, seed))
        fu, fv = s.u - (column + 0.5 - shift) * size, s.v - floor
        kind = hashed(column, layer + 4, seed)
        part = fv / tall
        taper = np.where(
            kind > 0.66,
            1.0,
            np.where(kind > 0.33, np.clip(1.2 - part, 0.2, 1), np.sqrt(np.clip(1 - (2 * part - 1) ** 2, 0, 1))),
        )
        thing = step(broad * taper - np.abs(fu), s.pixel) * step(fv, s.pixel) * step(tall - fv, s.pixel)
        hue = (
            _GOODS[(hashed(column, layer + 10, seed) * len(_GOODS)).astype(int)]
            * (0.6 + 0.6 * hashed(column, layer + 11, seed))[:, None]
        )
        label = step(0.03 - np.abs(fv - tall * 0.45), s.pixel) * (kind > 0.5)
        round_off = 1 - 0.45 * np.clip(np.abs(fu) / np.maximum(broad, 0.01), 0, 1) ** 2
        goods = blend(goods, blend(hue, _NET, 0.8 * label) * round_off[:, None], thing * (kind > 0.08))
        goods = blend(goods, rgb("#8a765c"), step(0.018 - np.abs(fv + 0.018), s.pixel))
    note_u = s.u - width * (0.15 + 0.6 * hashed(seed, 20, 931))
    note = step(0.12 - np.abs(note_u), s.pixel) * step(0.16 - np.abs(s.v - height * 0.55), s.pixel)
    lines = stripes(s.v, 0.035, 0.014, s.pixel) * step(0.09 - np.abs(note_u), s.pixel)
    goods = blend(goods, _NET * (1 - 0.7 * lines)[:, None], note)
    paint = (
        s.tint * (1 + 0.1 * fractal(s.u, s.v, s.pixel, 0.3, 5, 0.7, 935) - 0.4 * _edge_lines(s, width, height))[:, None]
    )
    lit = (hashed(seed, 21, 931) > 0.45)[:, None]
    glow = goods * _LAMP * 2.2 * lit * (1 - frame)[:, None] if s.night else None
    return Appearance(blend(goods * 0.85, paint, frame), None, glow, mirror=0.08 * (1 - frame))


def door(s: Spots) -> Appearance:
    """A panelled door with a light above. params: width, height, seed. tint: paint."""
    width, height, seed = s.params[:, 0], s.params[:, 1], (s.params[:, 2] * 1000).astype(np.int64)
    leaf = np.minimum(height * 0.8, 2.2)
    leaves = np.where(width > 1.25, 2, 1)
    fu = s.u / width * leaves
    fu = np.abs(fu - np.floor(fu) - 0.5) * width / leaves  # from the middle of a leaf
    inset = fu - width / leaves * 0.34
    rows = np.where(hashed(seed, 0, 940) > 0.5, 3, 2)
    fv = s.v / leaf * rows
    fv = np.abs(fv - np.floor(fv) - 0.5) * leaf / rows - leaf / rows * 0.36
    edge = np.maximum(inset, fv)  # below 0 inside a panel
    line = np.clip(1 - np.abs(edge) / (0.012 + 0.5 * s.pixel), 0, 1) * shown(0.05, s.pixel)
    seam = step(0.006 - np.abs(s.u - width / 2), s.pixel) * (leaves > 1)
    wear = fractal(s.u + s.params[:, 2], s.v, s.pixel, 0.4, 6, 0.72, 945)
    grime = np.exp(-np.maximum(s.v, 0) / 0.25)
    albedo = (
        s.tint
        * ((1 + 0.16 * wear - 0.1 * (edge < 0)) * (1 - 0.55 * line) * (1 - 0.7 * seam) * (1 - 0.4 * grime))[:, None]
    )
    handle = step(0.05 - np.hypot(s.u - width * 0.5 - 0.1, (s.v - 1.05) * 0.6), s.pixel)
    albedo = blend(albedo, rgb("#b79a55"), handle)
    light = step(s.v - leaf - 0.06, s.pixel) * (1 - _border(s.u, s.v, width, height, 0.05, s.pixel))
    light *= 1 - _bars(s.u, width, np.full(len(s), 4.0), 0.025, s.pixel)
    albedo = blend(albedo, _ROOM, light)
    frame = np.maximum(_border(s.u, s.v, width, height, 0.05, s.pixel), step(0.05 - np.abs(s.v - leaf), s.pixel))
    albedo = blend(albedo, s.tint * 0.7, frame)
    glow = (_LAMP * 0.8) * (light * (hashed(seed, 3, 940) > 0.5))[:, None] if s.night else None
    return Appearance(albedo, None, glow, mirror=0.06 * light)


def shutter(s: Spots) -> Appearance:
    """An opened shutter with slats. params: width, height, seed."""
    frame = _border(s.u, s.v, s.params[:, 0], s.params[:, 1], 0.06, s.pixel)
    frame = np.maximum(frame, step(0.04 - np.abs(s.v - s.params[:, 1] / 2), s.pixel))
    slats = stripes(s.v, 0.055, 0.02, s.pixel)
    wear = fractal(s.u + s.params[:, 2] * 13, s.v, s.pixel, 0.4, 6, 0.75, 950)
    peeled = np.clip(wear * 2 - 1.5, 0, 1)
    albedo = s.tint * ((1 + 0.2 * wear) * (1 - 0.5 * slats * (1 - frame)))[:, None]
    return Appearance(blend(albedo, rgb("#9c9384"), 0.7 * peeled))


def _border(
    u: np.ndarray, v: np.ndarray, width: np.ndarray, height: np.ndarray, size: float, pixel: np.ndarray
) -> np.ndarray:
    edge = np.minimum(np.minimum(u, width - u), np.minimum(v, height - v))
    return step(size - edge, pixel)


def _bars(x: np.ndarray, length: np.ndarray, count: np.ndarray, size: float, pixel: np.ndarray) -> np.ndarray:
    """Bars between `count` panes."""
    return stripes(x, length / count, size, pixel) * (count > 1)


def _edge_lines(s: Spots, width: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Dark grooves where the casement meets its frame."""
    edge = np.minimum(np.minimum(s.u, width - s.u), np.minimum(s.v, height - s.v))
    line = np.clip(1 - np.abs(edge - 0.035) / (0.006 + 0.5 * s.pixel), 0, 1)
    return line * np.minimum(0.012 / s.pixel, 1)
