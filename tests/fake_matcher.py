"""A matcher without a network: codes are checksums of images, and any two images are a shift apart that these decide."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pdc_sfm.errors import ImageError
from pdc_sfm.images import write_image
from pdc_sfm.matches.types import RawMatches


@dataclass(frozen=True)
class FakeCode:
    name: str
    seed: int
    size: tuple[int, int]
    nbytes: int = 1000


class FakeMatcher:
    """Counts what is asked of it. Images narrower than 8 pixels are refused, as a network would."""

    def __init__(self, matches: int = 60, code_bytes: int = 1000):
        self.count, self.code_bytes = matches, code_bytes
        self.encoded: list[str] = []
        self.matched: list[tuple[str, str]] = []

    def encode(self, image: np.ndarray, name: str) -> FakeCode:
        if image.shape[1] < 8:
            raise ImageError(f"{name} is too small")
        self.encoded.append(name)
        return FakeCode(name, zlib.crc32(image.tobytes()), (image.shape[1], image.shape[0]), self.code_bytes)

    def match(self, code0: FakeCode, code1: FakeCode) -> RawMatches:
        self.matched.append((code0.name, code1.name))
        rng = np.random.default_rng([code0.seed, code1.seed])
        points = rng.uniform(8, np.subtract(code0.size, 9), (self.count, 2))
        return RawMatches(points, points + self.shift(code0, code1), rng.uniform(0.1, 0.57, self.count))

    @staticmethod
    def shift(code0: FakeCode, code1: FakeCode) -> np.ndarray:
        """From places of the first image to the second, up to 7 pixels."""
        return np.array([code1.seed % 8 - code0.seed % 8, code1.seed // 8 % 8 - code0.seed // 8 % 8], float)


def write_images(folder: Path, count: int, size: tuple[int, int] = (64, 48)) -> list[str]:
    """Images of noise, named db/000.png and so on."""
    names = [f"db/{i:03d}.png" for i in range(count)]
    for i, name in enumerate(names):
        image = np.random.default_rng(i).integers(0, 256, (size[1], size[0], 3), np.uint8)
        write_image(folder / name, image)
    return names


def write_list(path: Path, pairs) -> Path:
    path.write_text("".join(f"{a} {b}\n" for a, b in pairs))
    return path
