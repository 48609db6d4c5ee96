"""What surfaces look like: pictures, laid on in metres. Photographs give natural statistics; drawn patterns need no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

_ROW = 1024  # points that OpenCV samples in one row; it takes at most 32,767
_LINEAR = ((np.arange(256) / 255) ** 2.2).astype(np.float32)


@dataclass(frozen=True)
class Skin:
    """How a picture lies on a surface. `params` and `tint` are what the mesh carries."""

    texture: int
    extent: float = 1.0  # metres that the picture's longer side covers; beyond, it is mirrored
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    contrast: float = 1.0  # 1 as it is, 0 its mean color alone
    gloss: float = 0.0  # strength of highlights
    glow: float = 0.0  # light of its own
    offset: tuple[float, float] = (0.0, 0.0)  # metres

    @property
    def params(self) -> tuple[float, ...]:
        return (self.texture, self.extent, self.contrast, self.gloss, self.glow, *self.offset)


class Textures:
    """Pictures (H, W, 3) uint8 with their smaller copies, in linear light."""

    def __init__(self, pictures: Sequence[np.ndarray]):
        self._levels = [_pyramid(_LINEAR[picture]) for picture in pictures]
        self._means = np.array([levels[-1].mean((0, 1)) for levels in self._levels], np.float32)

    def __len__(self) -> int:
        return len(self._levels)

    def shape(self, index: int) -> tuple[int, int]:
        """(height, width) of a picture, pixels."""
        return self._levels[index][0].shape[:2]

    def color(self, params: np.ndarray, u: np.ndarray, v: np.ndarray, pixel: np.ndarray) -> np.ndarray:
        """(n, 3) at metres (u, v), v upwards, blurred over `pixel` metres; params (n, 8) as of `Skin`."""
        out = np.empty((len(u), 3), np.float32)
        index = params[:, 0].astype(int)
        for number in np.unique(index):
            where = np.flatnonzero(index == number)
            extent, offset = params[where, 1], params[where, 5:7]
            height, width = self.shape(number)
            scale = max(height, width) / extent  # texture pixels a metre
            x = (u[where] + offset[:, 0]) * scale
            y = height - (v[where] + offset[:, 1]) * scale
            out[where] = _trilinear(self._levels[number], x, y, np.log2(np.maximum(pixel[where] * scale, 1.0)))
        contrast = params[:, 2:3]
        return out * contrast + self._means[index] * (1 - contrast)


def _pyramid(picture: np.ndarray) -> list[np.ndarray]:
    levels = [np.ascontiguousarray(picture, np.float32)]
    while min(levels[-1].shape[:2]) > 4:
        height, width = levels[-1].shape[:2]
        levels.append(cv2.resize(levels[-1], ((width + 1) // 2, (height + 1) // 2), interpolation=cv2.INTER_AREA))
    return levels


def _trilinear(levels: list[np.ndarray], x: np.ndarray, y: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Colors (n, 3) at continuous pixels of the first level."""
    level = np.clip(level, 0, len(levels) - 1)
    low = np.minimum(level.astype(int), len(levels) - 1)
    out = np.zeros((len(x), 3), np.float32)
    height, width = levels[0].shape[:2]
    for number, picture in enumerate(levels):
        weight = np.clip(1 - np.abs(level - number), 0, 1).astype(np.float32)
        where = np.flatnonzero((low == number) | (low + 1 == number))
        if len(where) == 0:
            continue
        rows, columns = picture.shape[:2]
        at = np.stack([x[where] * (columns / width) - 0.5, y[where] * (rows / height) - 0.5], -1)
        out[where] += weight[where, None] * _sampled(picture, _mirrored(at, (columns, rows)))
    return out


def _mirrored(points: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Pixel indices brought into the picture, mirrored about its edges, so that OpenCV need not search for them."""
    extent = np.array(size, points.dtype)
    folded = np.mod(points + 0.5, 2 * extent)
    return np.minimum(folded, 2 * extent - folded) - 0.5


def _sampled(picture: np.ndarray, points: np.ndarray) -> np.ndarray:
    count = len(points)
    padded = np.zeros((-(-count // _ROW) * _ROW, 2), np.float32)
    padded[:count] = points
    rows = padded.reshape(-1, _ROW, 2)
    parts = [
        cv2.remap(picture, part, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        for part in np.split(rows, range(30_000, len(rows), 30_000))
    ]
    return np.concatenate(parts).reshape(-1, 3)[:count]
