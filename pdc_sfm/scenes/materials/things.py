"""Materials of things: metal, wood, cloth, leaves, signs, posters, water, lanterns, paint."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.lettering import BILLS, SHOPS, WORDS, lettered
from pdc_sfm.scenes.materials.noise import blend, fractal, hashed, rgb, shown, step, stripes, value_noise
from pdc_sfm.scenes.materials.surface import Appearance, Spots

_RUST = rgb("#6b4328")
_PAPER = rgb("#d9d3c4")
_WARM = np.array([1.0, 0.66, 0.30], np.float32)
_INKS = np.stack(
    [
        rgb(code)
        for code in (
            "#c8342b",
            "#1f3d66",
            "#e4d9bd",
            "#d99a2b",
            "#2c5a48",
            "#23211f",
            "#b9c2c4",
            "#7c2f4a",
            "#e8e4d8",
            "#5f8aa6",
            "#c46a3a",
            "#8c9a4a",
        )
    ]
)


def metal(s: Spots) -> Appearance:
    wear = fractal(s.u + s.params[:, 0], s.v, s.pixel, 0.25, 6, 0.75, 1000)
    rust = np.clip(wear * 1.2 - 0.5, 0, 0.7)
    return Appearance(blend(s.tint * (1 + 0.2 * wear)[:, None], _RUST, rust), mirror=np.full(len(s), 0.015, np.float32))


def planks(s: Spots) -> Appearance:
    """Boards along u. params: seed, board width."""
    wide = np.maximum(s.params[:, 1], 0.06)
    board = np.floor(s.v / wide)
    grain = fractal(s.u / 12 + 3 * hashed(board, 0, 1010), s.v, s.pixel, 0.05, 8, 0.9, 1011)
    tone = hashed(board, (s.params[:, 0] * 100).astype(np.int64), 1012) - 0.5
    gap = stripes(s.v, wide, 0.008, s.pixel)
    wear = fractal(s.u + s.params[:, 0], s.v, s.pixel, 0.6, 5, 0.65, 1013)
    return Appearance(s.tint * ((1 + 0.3 * grain + 0.35 * tone + 0.15 * wear) * (1 - 0.7 * gap))[:, None])


def fabric(s: Spots) -> Appearance:
    """Striped cloth. params: seed, stripe period (0 none), second color."""
    period = np.maximum(s.params[:, 1], 1e-3)
    second = stripes(s.u, 2 * period, period, s.pixel) * (s.params[:, 1] > 0)
    weave = fractal(s.u, s.v, s.pixel, 0.012, 3, 0.9, 1020)
    dust = fractal(s.u + s.params[:, 0] * 7, s.v, s.pixel, 0.9, 6, 0.65, 1021)
    albedo = blend(s.tint, s.params[:, 2:5], second) * (1 + 0.1 * weave + 0.16 * dust)[:, None]
    sag = np.stack([value_noise(s.u * 1.7, s.v * 0.6, 1022), value_noise(s.u * 0.9, s.v * 1.9, 1023)], 1) * 0.14
    return Appearance(albedo, sag.astype(np.float32))


def leaf(s: Spots) -> Appearance:
    """A clump of leaves. params: seed."""
    tone = s.params[:, 0]
    edge = fractal(s.u + 9 * tone, s.v, s.pixel, 0.08, 4, 0.8, 1030)
    hue = blend(s.tint, s.tint * np.array([1.5, 1.12, 0.6], np.float32), np.clip(tone * 1.4 - 0.3, 0, 1))
    return Appearance(hue * (0.75 + 0.5 * hashed((tone * 1e4).astype(np.int64), 1, 1031) + 0.35 * edge)[:, None])


def bark(s: Spots) -> Appearance:
    ridges = fractal(s.u, s.v / 5, s.pixel, 0.05, 5, 0.75, 1040)
    blotch = fractal(s.u, s.v, s.pixel, 0.35, 5, 0.6, 1041)
    slope = np.stack([0.6 * ridges, 0.1 * blotch], 1)
    return Appearance(
        s.tint * (1 + 0.4 * ridges + 0.3 * blotch)[:, None], slope, cavity=np.clip(1 + 0.4 * ridges, 0.4, 1)
    )


def sign(s: Spots) -> Appearance:
    """A painted board with a word. params: width, height, word, seed. tint: the board; letters light or dark against it."""
    width, height = s.params[:, 0], s.params[:, 1]
    dark = s.tint.mean(1) > 0.2
    ink = np.where(dark[:, None], rgb("#20201e"), rgb("#e6dcc0"))
    gilded = (hashed((s.params[:, 3] * 1000).astype(np.int64), 1, 1050) > 0.6) & ~dark
    ink = np.where(gilded[:, None], rgb("#c8a24a"), ink)
    fit = width * 0.88 / (5.6 / 6 * np.array([len(w) for w in WORDS], np.float32)[s.params[:, 2].astype(np.int64)])
    size = np.minimum(height * 0.52, fit)
    word = lettered(s.u - width / 2, s.v - height / 2, s.params[:, 2], size, 0.17, s.pixel)
    inset = np.minimum(np.minimum(s.u, width - s.u), np.minimum(s.v, height - s.v))
    line = step(0.008 - np.abs(inset - 0.045), s.pixel)
    wear = fractal(s.u + s.params[:, 3] * 9, s.v, s.pixel, 0.5, 6, 0.68, 1051)
    albedo = blend(s.tint * (1 + 0.12 * wear)[:, None], ink, np.maximum(word, 0.8 * line))
    return Appearance(albedo * (1 - 0.25 * np.clip(wear, 0, 1))[:, None])


def poster(s: Spots) -> Appearance:
    """A printed bill: shapes, a picture, words, torn edges. params: width, height, seed."""
    width, height, seed = s.params[:, 0], s.params[:, 1], (s.params[:, 2] * 1000).astype(np.int64)

    def pick(k: int) -> np.ndarray:
        return hashed(seed, k, 1060)

    def hue(k: int) -> np.ndarray:
        return _INKS[(pick(k) * len(_INKS)).astype(int)]

    x, y = s.u / width, s.v / height
    albedo = blend(hue(1), hue(4), np.clip(y + 0.15 * np.sin(6 * x), 0, 1) * (pick(30) > 0.4))
    for k in range(4):  # discs, rings and bars
        cx, cy, radius = pick(40 + k), 0.25 + 0.6 * pick(50 + k), 0.08 + 0.22 * pick(60 + k)
        distance = np.hypot((x - cx) * width, (y - cy) * height) / height
        disc = step((radius - distance) * height, s.pixel)
        disc *= np.where(pick(70 + k) > 0.5, 1.0, step((distance - 0.7 * radius) * height, s.pixel))
        turn = 3.14 * pick(80 + k)
        bar = step(
            (0.03 + 0.05 * pick(90 + k) - np.abs((x - cx) * np.cos(turn) + (y - cy) * np.sin(turn))) * height, s.pixel
        )
        albedo = blend(albedo, hue(100 + 5 * k), np.where(pick(130 + k) > 0.45, disc, bar))
    face = fractal(s.u + 5 * pick(7), s.v, s.pixel, 0.5, 7, 0.62, 1065) * (pick(8) > 0.5)
    albedo = albedo * np.clip(1 + 0.5 * face, 0.2, 2)[:, None]
    ink = np.where((pick(9) > 0.5)[:, None], _PAPER, rgb("#161616"))
    top = lettered(
        s.u - width / 2, s.v - height * 0.86, len(SHOPS) + np.floor(len(BILLS) * pick(10)), width / 7.5, 0.2, s.pixel
    )
    low = lettered(
        s.u - width / 2, s.v - height * 0.12, len(SHOPS) + np.floor(len(BILLS) * pick(11)), width / 11, 0.14, s.pixel
    )
    small = stripes(s.v, 0.028, 0.012, s.pixel) * ((y < 0.3) & (y > 0.19) & (np.abs(x - 0.5) < 0.35))
    small *= np.clip(value_noise(s.u * 60, np.floor(s.v / 0.028), 1066) * 4 + 1.5, 0, 1)
    albedo = blend(albedo, ink, np.maximum(np.maximum(top, low), 0.8 * small))
    margin = step(0.03 - np.minimum(np.minimum(s.u, width - s.u), np.minimum(s.v, height - s.v)), s.pixel)
    albedo = blend(albedo, _PAPER, margin * (pick(12) > 0.3))
    torn = fractal(s.u + 3 * pick(13), s.v, s.pixel, 0.6, 6, 0.65, 1067) + 0.8 * np.maximum(
        np.abs(x - 0.5), np.abs(y - 0.5)
    )
    albedo = blend(albedo, _PAPER * 0.8, step(torn - 1.15, 0.02 + s.pixel) * 0.9)
    return Appearance(albedo * (0.95 + 0.12 * fractal(s.u, s.v, s.pixel, 0.25, 5, 0.7, 1068))[:, None])


def water(s: Spots) -> Appearance:
    ripple = (
        np.stack([fractal(s.u, s.v, s.pixel, 0.3, 4, 0.6, 1070), fractal(s.u, s.v, s.pixel, 0.3, 4, 0.6, 1075)], 1)
        * 0.07
    )
    floor = s.tint * (1 + 0.5 * fractal(s.u, s.v, s.pixel, 0.5, 5, 0.6, 1077))[:, None]
    return Appearance(floor, ripple, mirror=np.full(len(s), 0.06, np.float32))


def lantern(s: Spots) -> Appearance:
    glow = np.broadcast_to(_WARM * 9.0, (len(s), 3)) if s.night else None
    return Appearance(
        np.broadcast_to(rgb("#b9b6a6"), (len(s), 3)) * np.float32(0.8), None, glow, np.full(len(s), 0.08, np.float32)
    )


def paint(s: Spots) -> Appearance:
    """Smooth painted sheet, as of cars; params: seed, mirror."""
    dust = fractal(s.u + s.params[:, 0], s.v, s.pixel, 0.8, 5, 0.6, 1080)
    return Appearance(s.tint * (1 + 0.08 * dust)[:, None], None, None, s.params[:, 1].copy())


def cloth(s: Spots) -> Appearance:
    """Clothes, hair and skin. params: seed."""
    fold = fractal(s.u + 5 * s.params[:, 0], s.v * 0.6, s.pixel, 0.22, 5, 0.6, 1090)
    return Appearance(s.tint * (1 + 0.25 * fold)[:, None], np.stack([0.35 * fold, 0.1 * fold], 1))


def clock(s: Spots) -> Appearance:
    """A dial of radius params[0] about the texture's origin, hands by params[1] (hours)."""
    radius = s.params[:, 0]
    r, angle = np.hypot(s.u, s.v) / radius, np.arctan2(s.u, s.v)
    hours = np.abs((angle / (2 * np.pi) * 12 + 0.5) % 1 - 0.5) * 2 * np.pi / 12 * r * radius
    mark = step(0.03 * radius - hours, s.pixel) * ((r > 0.72) & (r < 0.92))
    rim = step((np.abs(r - 0.96) < 0.04) * 0.1 - 0.05, s.pixel)
    hands = np.zeros(len(s), np.float32)
    for turn, length, thick in ((s.params[:, 1] / 12, 0.5, 0.045), (s.params[:, 1] % 1, 0.78, 0.03)):
        a = 2 * np.pi * turn
        along, across = s.u * np.sin(a) + s.v * np.cos(a), s.u * np.cos(a) - s.v * np.sin(a)
        on = step(thick * radius - np.abs(across), s.pixel) * step(along + 0.1 * radius, s.pixel)
        hands = np.maximum(hands, on * step(length * radius - along, s.pixel))
    albedo = blend(s.tint, rgb("#c19b40"), np.maximum(np.maximum(mark, rim), hands))
    glow = albedo * 0.5 if s.night else None
    return Appearance(albedo, None, glow)


def produce(s: Spots) -> Appearance:
    """Fruit heaped in a crate. params: seed. tint: the fruit."""
    size = 0.075
    iu, iv = np.floor(s.u / size + 0.5 * (np.floor(s.v / size) % 2)), np.floor(s.v / size)
    fu, fv = s.u / size + 0.5 * (iv % 2) - iu - 0.5, s.v / size - iv - 0.5
    r = np.hypot(fu, fv)
    tone = hashed(iu, iv, 1100 + (s.params[:, 0] * 100).astype(np.int64))
    fade = shown(size, s.pixel)
    ball = np.clip(1.25 - 2.2 * r * r, 0.25, 1)
    albedo = s.tint * ((0.7 + 0.6 * tone * fade) * (1 + (ball - 0.8) * fade))[:, None]
    return Appearance(albedo, np.stack([-1.2 * fu * fade, -1.2 * fv * fade], 1).astype(np.float32))
