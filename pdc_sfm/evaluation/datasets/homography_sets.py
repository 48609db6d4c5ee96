"""Folders of photographs of planes with homographies between them: Oxford's affine set, HPatches, or one's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pdc_sfm.errors import FormatError

_HOMOGRAPHY = re.compile(r"H_?1(?:to|_)(\d+)p?(?:\.txt|\.xml)?")
_IMAGES = (".ppm", ".pgm", ".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class PlanePair:
    """The first image of a set, another one, and the file of the homography from the first to the other."""

    number: int
    reference: Path
    query: Path
    homography: Path


def find_sets(folder: Path, names: Sequence[str] = ()) -> dict[str, list[PlanePair]]:
    """The sets in a folder, or the folder itself as one, by name; with `names` these alone."""
    folders = [folder, *sorted(path for path in folder.glob("*") if path.is_dir())] if folder.is_dir() else []
    found = {path.resolve().name: pairs for path in folders if (pairs := _pairs(path))}
    if not found:
        raise FormatError(
            f"{folder} holds no set of images with homographies: H1to2p with img1 and img2, or H_1_2 with 1 and 2"
        )
    for name in names:
        if name not in found:
            raise FormatError(f"{folder} holds no set {name}: it has {', '.join(found)}")
    return {name: found[name] for name in names} if names else found


def _pairs(folder: Path) -> list[PlanePair]:
    numbered = [(int(match[1]), path) for path in folder.iterdir() if (match := _HOMOGRAPHY.fullmatch(path.name))]
    return [PlanePair(n, _image(folder, 1), _image(folder, n), path) for n, path in sorted(numbered) if n != 1]


def _image(folder: Path, number: int) -> Path:
    for path in (folder / f"{stem}{number}{suffix}" for stem in ("img", "") for suffix in _IMAGES):
        if path.is_file():
            return path
    raise FormatError(
        f"{folder} has a homography of image {number}, but no img{number} or {number} ({', '.join(_IMAGES)})"
    )
