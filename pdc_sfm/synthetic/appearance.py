"""Changes of light and camera, for each image separately: usually mild, sometimes strong, sometimes night."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import cv2
import numpy as np

from pdc_sfm.settings import require


@dataclass(frozen=True)
class PhotometricSettings:
    """The probability of each change; `strength` scales how far it goes (0 switches all off)."""

    strength: float = 1.0  # how far each change goes; 0: there is none
    color: float = 0.8  # brightness, contrast, gamma, saturation, hue, cast
    gray: float = 0.04  # no colors
    shading: float = 0.25  # light that varies slowly over the image
    shadow: float = 0.15  # one hard or soft shadow
    night: float = 0.12  # dark, noisy, lit by lamps
    blur: float = 0.25  # out of focus, or too few pixels
    motion: float = 0.08  # blur of a moved camera
    noise: float = 0.35  # of the sensor
    jpeg: float = 0.4  # strong compression

    def __post_init__(self) -> None:
        require(0 <= self.strength <= 2, "photometric.strength must lie in 0..2")
        for name in ("color", "gray", "shading", "shadow", "night", "blur", "motion", "noise", "jpeg"):
            require(0 <= getattr(self, name) <= 1, f"photometric.{name} is a probability: 0..1")


MILD = PhotometricSettings(strength=0.5, gray=0, shading=0, shadow=0, night=0, motion=0)


def augment(image: np.ndarray, settings: PhotometricSettings, rng: np.random.Generator) -> np.ndarray:
    """(H, W, 3) uint8 RGB -> the same scene in another light through another camera."""
    if settings.strength == 0:
        return image
    severity = settings.strength * rng.random() ** 1.5  # mostly mild, its mean is 0.4
    chosen = {name: rng.random() < getattr(settings, name) for name in PROBABLE}
    work = image.astype(np.float32) * np.float32(1 / 255)
    if chosen["shading"]:
        work *= shading(work.shape[:2], severity, rng)
    if chosen["shadow"]:
        work *= shadow(work.shape[:2], severity, rng)
    if chosen["color"]:
        work = color(work, severity, rng)
    if chosen["night"]:
        work = night(work, severity, rng)
    if chosen["gray"]:
        work = np.repeat(cv2.cvtColor(work, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)
    if chosen["blur"]:
        work = blur(work, severity, rng)
    if chosen["motion"]:
        work = motion_blur(work, severity, rng)
    if chosen["noise"] or chosen["night"]:
        work = noise(work, severity + 0.3 * chosen["night"], rng)
    image = np.clip(work * 255 + 0.5, 0, 255).astype(np.uint8)
    return jpeg(image, severity, rng) if chosen["jpeg"] else image


PROBABLE = ("color", "gray", "shading", "shadow", "night", "blur", "motion", "noise", "jpeg")


def color(image: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Exposure, contrast, gamma, saturation, hue and a color cast."""

    def draw(scale: float) -> float:
        return severity * scale * rng.uniform(-1, 1)

    gamma, gain, lift = math.exp(draw(0.7)), math.exp(draw(0.6)), draw(0.15)
    gray = np.full((3, 3), 1 / 3)
    saturate = gray + math.exp(draw(1.0)) * (np.eye(3) - gray)
    matrix = np.diag(np.exp([draw(0.35) for _ in range(3)])) @ saturate @ _hue(draw(0.5))
    middle = float(image.mean())
    mixed = cv2.transform(image, np.column_stack([gain * matrix, np.full(3, (1 - gain) * middle * 0.5 + lift)]))
    return cv2.pow(np.clip(mixed, 0, 1), gamma)


def _hue(angle: float) -> np.ndarray:
    """Rotation of the colors about the gray axis (Rodrigues)."""
    axis = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
    return np.eye(3) + math.sin(angle) * axis + (1 - math.cos(angle)) * axis @ axis


def shading(size: tuple[int, int], severity: float, rng: np.random.Generator) -> np.ndarray:
    """A slowly varying gain, (H, W, 1)."""
    cells = int(rng.integers(2, 5))
    field = rng.normal(0, 0.2 + 0.5 * severity, (cells, cells)).astype(np.float32)
    return np.exp(cv2.resize(field, size[::-1], interpolation=cv2.INTER_CUBIC))[..., None]


def shadow(size: tuple[int, int], severity: float, rng: np.random.Generator) -> np.ndarray:
    """A gain with one dark polygon, (H, W, 1)."""
    height, width = size
    points = rng.uniform(-0.3, 1.3, (int(rng.integers(3, 7)), 2)) * (width, height)
    cover = np.zeros(size, np.float32)
    cv2.fillConvexPoly(cover, cv2.convexHull(points.astype(np.int32)), 1.0)
    cover = cv2.GaussianBlur(cover, (0, 0), rng.uniform(0.7, 8))
    return (1 - (0.2 + 0.6 * min(severity, 1)) * rng.uniform(0.5, 1) * cover)[..., None]


def night(image: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Dark, with a few lamps: pools of warm light on the scene and glowing spots above it."""
    height, width = image.shape[:2]
    side = min(height, width)
    coarse = 8  # pools of light vary slowly: they are summed on a coarse grid
    y, x = np.mgrid[0 : height + coarse : coarse, 0 : width + coarse : coarse].astype(np.float32) + (coarse - 1) / 2
    light = np.empty((*x.shape, 3), np.float32)
    light[:] = rng.uniform(0.05, 0.35) * rng.uniform((0.5, 0.6, 0.8), (0.9, 0.9, 1.2))
    lamps = []
    for _ in range(rng.integers(1, 7)):
        center, tint = rng.uniform(0, (width, height)), rng.uniform((0.9, 0.6, 0.2), (1.0, 0.95, 0.9))
        reach, power = side * rng.uniform(0.1, 0.45), rng.uniform(0.3, 1.1)
        pool = power / (1 + ((x - center[0]) ** 2 + (y - center[1]) ** 2) / reach**2) ** 2
        light += pool[..., None] * tint.astype(np.float32)
        if rng.random() < 0.7:
            lamps.append((center, side * rng.uniform(0.004, 0.02), rng.uniform(0.5, 1.5) * tint))
    light = cv2.resize(light, None, fx=coarse, fy=coarse, interpolation=cv2.INTER_LINEAR)[:height, :width]
    dark = cv2.pow(np.clip(image, 0, 1), rng.uniform(1.0, 1.6)) * light
    bright = float(np.percentile(dark[::4, ::4].max(-1), 99))
    dark *= min(rng.uniform(0.5, 1.1) / max(bright, 0.05), 4.0)  # what the camera does about the dark
    for center, radius, tint in lamps:
        _glow(dark, center, radius, tint.astype(np.float32))
    return dark


def _glow(image: np.ndarray, center: np.ndarray, radius: float, tint: np.ndarray) -> None:
    """Add a spot that fades as 1 / (1 + r^2), cut off smoothly at twelve radii."""
    reach = int(12 * radius) + 1
    left, top = np.maximum(center.astype(int) - reach, 0)
    right, bottom = center.astype(int) + reach + 1
    part = image[top:bottom, left:right]
    y, x = np.ogrid[top : top + part.shape[0], left : left + part.shape[1]]
    squared = ((x - center[0]) ** 2 + (y - center[1]) ** 2) / radius**2
    part += np.maximum(1 / (1 + squared) - 1 / 145, 0).astype(np.float32)[..., None] * tint


def blur(image: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Out of focus, or taken with fewer pixels."""
    if rng.random() < 0.6:
        return cv2.GaussianBlur(image, (0, 0), 0.3 + 2.2 * severity * rng.random())
    height, width = image.shape[:2]
    factor = 1 + 2 * severity * rng.random()
    small = cv2.resize(image, (round(width / factor), round(height / factor)), interpolation=cv2.INTER_AREA)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)


def motion_blur(image: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Along a line about each pixel, so that nothing is displaced on average."""
    half = 1 + int(6 * severity * rng.random())
    angle = rng.uniform(0, math.pi)
    kernel = np.zeros((2 * half + 1, 2 * half + 1), np.float32)
    dx, dy = round(half * math.cos(angle)), round(half * math.sin(angle))
    cv2.line(kernel, (half - dx, half - dy), (half + dx, half + dy), 1.0)
    kernel += kernel[::-1, ::-1]
    return cv2.filter2D(image, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REFLECT_101)


def noise(image: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Sensor noise: part constant, part growing with the root of the light; at times coarse-grained."""
    level = np.float32(0.004 + 0.05 * severity * rng.random())
    grain = _grain(image.shape, rng)
    if rng.random() < 0.3:
        grain = 2 * cv2.GaussianBlur(grain, (0, 0), 0.7)
    amount = cv2.sqrt(np.maximum(image, 0))
    amount += np.float32(0.4)
    amount *= grain
    amount *= level
    return image + amount


def _grain(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Normal noise cut at a random place from one fixed sheet: drawing it anew would cost more than all else."""
    sheet = _sheet()
    if max(shape[:2]) > len(sheet) // 2:
        return rng.standard_normal(shape, dtype=np.float32)
    top, left = rng.integers(0, len(sheet) - np.array(shape[:2]) + 1)
    return sheet[top : top + shape[0], left : left + shape[1]]


@functools.cache
def _sheet(side: int = 1200) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((side, side, 3), dtype=np.float32)


def jpeg(image: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Compressed and read again, quality 95 down to 15."""
    quality = int(np.clip(95 - 80 * severity * rng.random() - 10 * rng.random(), 15, 95))
    data = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.ascontiguousarray(cv2.imdecode(data, cv2.IMREAD_COLOR)[..., ::-1])
