"""Masks of images, named as in COLMAP: nothing is matched where a mask is black (people, sky, a vehicle).

The mask of `a/b.jpg` is `a/b.jpg.png` in the folder of masks, or `a/b.png`; it has the image's size, as the file stores it
(EXIF turns neither). A match is dropped if its point in either image lies on a pixel that is 0.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.errors import ImageError
from pdc_sfm.files import file_digest
from pdc_sfm.images import read_image
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size

KEPT = 256  # masks in memory, of one bit a pixel


@dataclass(frozen=True)
class MaskedMatches(RawMatches):
    """The matches that no mask covers, and how many some did."""

    dropped: int = 0


class Masks:
    """The masks of a folder, by the names of the images."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder).absolute()
        if not self.folder.is_dir():
            raise ImageError(f"{folder} is not a folder of masks")

    def path(self, name: str) -> Path | None:
        """The file of an image's mask; None if it has none."""
        found = (self.folder / f"{name}.png", (self.folder / name).with_suffix(".png"))
        return next((path for path in found if path.is_file()), None)

    def missing(self, names: Iterable[str]) -> str | None:
        """What to say of images without a mask, of which all is matched; an error if not one has any."""
        names = list(names)
        absent = [name for name in names if self.path(name) is None]
        if not absent:
            return None
        looked = f"{self.folder / absent[0]}.png or {(self.folder / absent[0]).with_suffix('.png')}"
        if len(absent) == len(names):
            raise ImageError(f"{self.folder} has no mask of any of {len(names)} images: expected {looked}")
        return f"{len(absent)} of {len(names)} images have no mask and are matched everywhere (first: no {looked})"

    def digest(self) -> str:
        """A fingerprint of all masks' content."""
        digest = hashlib.sha256()
        for path in sorted(self.folder.rglob("*.png")):
            digest.update(f"{path.relative_to(self.folder).as_posix()}\0{file_digest(path)}\0".encode())
        return digest.hexdigest()[:16]

    def check(self, name: str, size: Size) -> None:
        """An error if the mask of an image of (width, height) has another size, or cannot be read."""
        path = self.path(name)
        if path is None:
            return
        found = _bits(path)[1]
        if found != tuple(size):
            raise ImageError(
                f"the mask {path} is {found[0]} x {found[1]}, the image {name} {size[0]} x {size[1]}: make the mask as "
                "large as the image"
            )

    def covers(self, name: str) -> np.ndarray | None:
        """(H, W) bool, true where an image is not to be matched; None if it has no mask."""
        path = self.path(name)
        if path is None:
            return None
        bits, (width, _) = _bits(path)
        return np.unpackbits(bits, axis=1, count=width).astype(bool)

    def covered(self, name: str, points: np.ndarray) -> np.ndarray:
        """Which (N, 2) pixel indices of an image lie under its mask."""
        path = self.path(name)
        if path is None:
            return np.zeros(len(points), bool)
        bits, (width, height) = _bits(path)
        x = np.clip(np.floor(points[:, 0] + 0.5).astype(np.int64), 0, width - 1)
        y = np.clip(np.floor(points[:, 1] + 0.5).astype(np.int64), 0, height - 1)
        return (bits[y, x >> 3] >> (7 - (x & 7)).astype(np.uint8)) & 1 == 1

    def drop(self, pair: tuple[str, str], matches: RawMatches) -> MaskedMatches:
        """The matches of a pair without those under a mask in either image."""
        under = self.covered(pair[0], matches.keypoints0) | self.covered(pair[1], matches.keypoints1)
        kept = matches.select(~under)
        return MaskedMatches(kept.keypoints0, kept.keypoints1, kept.scores, int(under.sum()))

    def over(self, match_many: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
        """As a function that matches pairs, without what is masked; what is on its way from a device is not waited for."""

        def match(pairs: Sequence[tuple[str, str]], codes: Sequence[Any]) -> list[Any]:
            found = match_many(pairs, codes)
            return [
                functools.partial(self._drop_later, pair, matches) if callable(matches) else self.drop(pair, matches)
                for pair, matches in zip(pairs, found)
            ]

        return match

    def _drop_later(self, pair: tuple[str, str], matches: Callable[[], RawMatches]) -> MaskedMatches:
        return self.drop(pair, matches())


def _bits(path: Path) -> tuple[np.ndarray, Size]:
    """What a mask covers, as bits (H, W / 8), and its (width, height). The file may change between two runs."""
    return _read_bits(path, path.stat().st_mtime_ns)


@functools.lru_cache(KEPT)
def _read_bits(path: Path, _time: int) -> tuple[np.ndarray, Size]:
    pixels = read_image(path)
    return np.packbits(~pixels.any(axis=2), axis=1), (pixels.shape[1], pixels.shape[0])
