"""Pictures drawn from chance, for worlds without photographs: grain, weave, tiles, prints and marbling."""

from __future__ import annotations

import cv2
import numpy as np

from pdc_sfm.scenes.materials.noise import fractal

SIDE = 320  # pixels


def pattern(random: np.random.Generator) -> np.ndarray:
    """A random picture (SIDE, SIDE, 3) uint8."""
    draw = (_grain, _weave, _tiles, _print, _print, _marble)[int(random.integers(6))]
    return np.clip(draw(random), 0, 255).astype(np.uint8)


def _noise(random: np.random.Generator, largest: float, octaves: int, stretch: float = 1.0) -> np.ndarray:
    """(SIDE, SIDE) in about [-1, 1]; wavelengths in pixels, longer along the rows by `stretch`."""
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32).reshape(2, -1)
    pixel = np.full(x.shape, 0.5, np.float32)
    seed = int(random.integers(1, 1 << 20))
    return fractal(x / stretch, y, pixel, largest, octaves, 0.65, seed).reshape(SIDE, SIDE)


def _palette(random: np.random.Generator, count: int) -> np.ndarray:
    """Colors (count, 3) around one hue, of different brightness."""
    hue = random.uniform(0, 180)
    hues = np.mod(hue + random.normal(0, 18, count), 180)
    saturation, value = random.uniform(10, 190, count), random.uniform(40, 245, count)
    hsv = np.stack([hues, saturation, value], 1).astype(np.uint8)[None]
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[0].astype(np.float32)


def _mixed(colors: np.ndarray, share: np.ndarray) -> np.ndarray:
    share = np.clip(share, 0, 1)[..., None]
    return colors[0] * (1 - share) + colors[1] * share


def _marble(random: np.random.Generator) -> np.ndarray:
    colors = _palette(random, 3)
    base = _mixed(colors, 0.5 + 0.5 * _noise(random, 120, 7))
    veins = np.exp(-((_noise(random, 90, 6) / 0.06) ** 2))[..., None]
    return base * (1 - veins) + colors[2] * veins


def _grain(random: np.random.Generator) -> np.ndarray:
    colors = _palette(random, 2)
    rings = np.sin(_noise(random, 60, 4, 7.0) * random.uniform(6, 14)) * 0.5 + 0.5
    return _mixed(colors, 0.7 * rings + 0.3 * _noise(random, 8, 3, 12.0))


def _weave(random: np.random.Generator) -> np.ndarray:
    colors = _palette(random, 3)
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    period, width = random.integers(8, 60, 2), random.uniform(0.2, 0.7, 2)
    across = (x % period[0] < width[0] * period[0]).astype(np.float32)
    down = (y % period[1] < width[1] * period[1]).astype(np.float32) * (random.random() < 0.6)
    cloth = _mixed(colors[:2], 0.6 * across + 0.4 * down)
    return cloth * (1 + 0.18 * _noise(random, 6, 3)[..., None]) + 12 * _noise(random, 100, 4)[..., None]


def _tiles(random: np.random.Generator) -> np.ndarray:
    colors = _palette(random, 2)
    count = int(random.integers(3, 9))
    tones = np.kron(random.uniform(0, 0.8, (count, count)), np.ones((SIDE // count + 1,) * 2))[:SIDE, :SIDE]
    picture = _mixed(colors, tones + 0.15 * _noise(random, 30, 5))
    y, x = np.mgrid[0:SIDE, 0:SIDE] % (SIDE // count + 1)
    picture[(x < 3) | (y < 3)] = _palette(random, 1)[0] * 0.6
    return picture


def _print(random: np.random.Generator) -> np.ndarray:
    """Shapes and lines of letters, as on covers, packages and posters."""
    colors = _palette(random, 8)
    picture = _mixed(colors[:2], 0.5 + 0.5 * _noise(random, 150, 4)).astype(np.uint8)
    for _ in range(int(random.integers(4, 22))):
        color = tuple(float(c) for c in colors[int(random.integers(8))])
        at = tuple(int(c) for c in random.integers(0, SIDE, 2))
        size = int(random.integers(8, 90))
        if random.random() < 0.4:
            cv2.circle(picture, at, size // 2, color, -1, cv2.LINE_AA)
        elif random.random() < 0.5:
            cv2.rectangle(picture, at, (at[0] + size, at[1] + size // 2), color, -1)
        else:
            cv2.line(
                picture, at, tuple(int(c) for c in random.integers(0, SIDE, 2)), color, size // 12 + 1, cv2.LINE_AA
            )
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz   "))
    for row in range(int(random.integers(2, 12))):
        text = "".join(letters[random.integers(0, len(letters), 24)])
        height, y = random.uniform(0.35, 1.3), int(random.integers(10, SIDE))
        color = tuple(float(c) for c in colors[row % 8])
        at = (int(random.integers(0, 60)), y)
        cv2.putText(picture, text, at, cv2.FONT_HERSHEY_SIMPLEX, height, color, 1 + row % 2, cv2.LINE_AA)
    return picture * (1 + 0.05 * _noise(random, 5, 2)[..., None])
