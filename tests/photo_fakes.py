"""Photographs made of waves: smooth, so that resampling is exact to a gray level and a shift shows."""

import numpy as np

from pdc_sfm.errors import ImageError


def waves(seed: int, size: tuple[int, int] = (240, 320)) -> np.ndarray:
    """(H, W, 3) uint8, a sum of six waves a channel, none shorter than a tenth of the image."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size[0], : size[1]].astype(float)
    channels = []
    for _ in range(3):
        angles, phases = rng.uniform(0, np.pi, 6), rng.uniform(0, 6.3, 6)
        lengths = rng.uniform(0.1, 0.25, 6) * min(size)
        along = x[..., None] * np.cos(angles) + y[..., None] * np.sin(angles)
        channels.append(127 + 30 * np.cos(2 * np.pi * along / lengths + phases).sum(-1))
    return np.clip(np.stack(channels, -1) + 0.5, 0, 255).astype(np.uint8)


class WavePhotos:
    """A few of them, as a source of photographs. A class of its own, so that workers can receive it."""

    def __init__(self, n: int = 3, size: tuple[int, int] = (240, 320)) -> None:
        self.photos = [waves(seed, size) for seed in range(n)]

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.photos[index]

    def other(self, index: int, rng: np.random.Generator) -> int:
        return (index + 1) % len(self)


class VanishingPhotos(WavePhotos):
    """A source whose files are gone."""

    def __getitem__(self, index: int) -> np.ndarray:
        raise ImageError("cannot read image a.jpg: No such file")
