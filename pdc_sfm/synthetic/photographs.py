"""Folders of photographs and cut-outs for training."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

import cv2
import numpy as np

from pdc_sfm.errors import ImageError, UserError
from pdc_sfm.images import list_images
from pdc_sfm.paths import check_regular

MIN_SIDE = 96  # pixels; smaller photographs cannot fill a training image
MAX_SIDE = 1024  # larger ones are shrunk on reading
VALIDATION_SHARE = 0.03  # of the photographs, drawn by their names: what is validated was never trained with


def held_out(name: str) -> bool:
    """Whether a photograph is kept for validation: fixed by its name, for about 3 % of any folder.

    Names that differ only in their last digit go together, because neighboring numbers often show the same place.
    """
    block = re.sub(r"(\d+)\d$", r"\1", PurePosixPath(name).with_suffix("").as_posix())
    return int.from_bytes(hashlib.sha256(block.encode()).digest()[:4], "big") < VALIDATION_SHARE * 2**32


class Photographs:
    """Usable photographs of a folder. `photos[i]` is (H, W, 3) uint8 RGB, decoded anew from bytes kept in memory."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        reductions: Sequence[int],
        skipped: dict[str, str],
        cache_bytes: int = 1 << 29,
    ) -> None:
        self.folder, self.names, self.skipped, self.cache_bytes = folder, list(names), skipped, cache_bytes
        self._reductions = list(reductions)
        self._series = [re.sub(r"\d+$", "", PurePosixPath(name).with_suffix("").as_posix()) for name in names]
        self._bytes: dict[int, np.ndarray] = {}
        self._held = 0

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> np.ndarray:
        image = _decode(self._read(index), self._reductions[index])
        if image is None:
            raise ImageError(f"{self.folder / self.names[index]} can no longer be read: was it changed meanwhile?")
        return image

    def other(self, index: int, rng: np.random.Generator) -> int:
        """A photograph of another place: of another series (name without number) if there is one, else far off."""
        for _ in range(50):
            other = int(rng.integers(len(self)))
            if self._series[other] != self._series[index]:
                return other
        away = int(rng.integers(len(self) // 3, len(self) - len(self) // 3)) or 1
        return (index + away) % len(self)

    def summary(self) -> str:
        """One line for the user: how many are used, how many were left out and why."""
        text = f"{len(self)} photographs in {self.folder}"
        if self.skipped:
            counts = Counter(self.skipped.values())
            first = next(iter(self.skipped))
            reasons = ", ".join(f"{n} {why}" for why, n in counts.items())
            text += f"; skipped {len(self.skipped)} ({reasons}; first: {first})"
        return text

    def _read(self, index: int) -> np.ndarray:
        data = self._bytes.get(index)
        if data is None:
            data = _file_bytes(self.folder / self.names[index])
            if self._held + data.nbytes <= self.cache_bytes:
                self._bytes[index] = data
                self._held += data.nbytes
        return data

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_bytes": {}, "_held": 0}  # a worker reads for itself; the system's cache serves it


def open_photographs(folder: Path | str, part: Literal["training", "validation", "all"] = "training") -> Photographs:
    """Look at every file of a folder once, leave out what cannot be used, and keep the wanted part."""
    folder = Path(folder)
    names = [n for n in list_images(folder) if part == "all" or held_out(n) == (part == "validation")]
    usable, reductions, skipped = [], [], {}
    for name in names:
        size, reason = _look(folder / name)
        if reason:
            skipped[name] = reason
        else:
            usable.append(name)
            reductions.append(_reduction(name, size))
    photos = Photographs(folder, usable, reductions, skipped)
    if not usable:
        why = f": {photos.summary()}" if skipped else ""
        raise UserError(f"no usable photograph for {part} among {len(names)} in {folder}{why}; give a folder with more")
    if part == "training" and len(usable) < 2:
        raise UserError(f"{folder} has one usable photograph: training needs at least two, better thousands")
    return photos


def _look(path: Path) -> tuple[tuple[int, int], str | None]:
    """About how large a photograph is, and why it is left out. An eighth of its size is decoded, quick for JPEG."""
    try:
        small = cv2.imdecode(_file_bytes(path), cv2.IMREAD_REDUCED_GRAYSCALE_8 | cv2.IMREAD_IGNORE_ORIENTATION)
    except (cv2.error, ImageError):
        small = None
    if small is None:
        return (0, 0), "unreadable"
    size = (8 * small.shape[0], 8 * small.shape[1])
    if min(size) < MIN_SIDE:
        return size, f"smaller than {MIN_SIDE} px"
    return size, "blank" if small.std() < 2 else None


def _reduction(name: str, size: tuple[int, int]) -> int:
    """By how much a JPEG's decoder, which is then faster, may shrink it without going below MAX_SIDE."""
    if not name.lower().endswith((".jpg", ".jpeg")):
        return 1
    return max(r for r in (1, 2, 4, 8) if r == 1 or max(size) >= r * MAX_SIDE + 8)


def _decode(data: np.ndarray, reduction: int) -> np.ndarray | None:
    flag = cv2.IMREAD_COLOR if reduction == 1 else getattr(cv2, f"IMREAD_REDUCED_COLOR_{reduction}")
    try:
        image = cv2.imdecode(data, flag | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        return None
    if image is None:
        return None
    shrink = MAX_SIDE / max(image.shape[:2])
    if shrink < 1:
        image = cv2.resize(image, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _file_bytes(path: Path) -> np.ndarray:
    try:
        check_regular(path)
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise ImageError(f"cannot read image {path}: {error.strerror or error}") from None
    if not data.size:
        raise ImageError(f"{path} is empty")
    return data


class Cutouts(list):
    """Cut-outs, (h, w, 4) uint8 RGBA each, and the names of the files that are none."""

    def __init__(self, images: Iterable[np.ndarray], folder: Path, skipped: list[str]) -> None:
        super().__init__(images)
        self.folder, self.skipped = folder, skipped

    def summary(self) -> str:
        """One line for the user."""
        left_out = f"; skipped {len(self.skipped)} not RGBA (first: {self.skipped[0]})" if self.skipped else ""
        return f"{len(self)} cut-outs in {self.folder}{left_out}"


def open_cutouts(folder: Path | str) -> Cutouts:
    """All cut-outs with transparency in a folder, long side at most 256."""
    folder, cutouts, skipped = Path(folder), [], []
    for name in list_images(folder):
        try:
            image = cv2.imdecode(_file_bytes(folder / name), cv2.IMREAD_UNCHANGED)
        except (cv2.error, ImageError):
            image = None
        if image is None or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 4:
            skipped.append(name)
            continue
        shrink = 256 / max(image.shape[:2])
        if shrink < 1:
            image = cv2.resize(image, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
        cutouts.append(cv2.cvtColor(image, cv2.COLOR_BGRA2RGBA))
    if not cutouts:
        raise UserError(f"no RGBA picture in {folder}: leave it out to have shapes cut from the photographs")
    return Cutouts(cutouts, folder, skipped)
