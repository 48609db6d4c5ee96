"""Pairs of any images with whatever is known of them, from a list: a pose, a homography, points set by hand, or nothing.

A line is `image0 image1` and one of

    rot0 rot1 K0 (9) K1 (9) T_1_from_0 (16)   relative pose, as in SuperGlue's lists of ScanNet and YFCC
    H (9), or the name of a file with it      homography of pixel indices of image0 to those of image1
    points x0 y0 x1 y1 ...                    places set by hand, pixel indices
    none                                      the images show nothing in common
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.homography_pair import checked_homography, read_homography
from pdc_sfm.evaluation.datasets.pose_list import WORDS, pose_pair
from pdc_sfm.evaluation.datasets.pose_pair import PosePair, epipolar_distance
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size, inside, transform

REACH = 16.0  # pixels around a place set by hand in which a match tells of it
STRETCH = 2.0  # a match so far from the place may land that many times as far from its counterpart
KINDS = ("pose", "homography", "points", "none")


@dataclass(frozen=True)
class ListedPair:
    """Two images and the truth of one kind about them."""

    kind: str  # one of KINDS
    name: str
    image0: Path
    image1: Path
    pose: PosePair | None = None
    homography: np.ndarray | None = None  # (3, 3)
    points: np.ndarray | None = None  # (N, 4)

    def errors(self, matches: RawMatches, query: Size) -> np.ndarray:
        """(N,) pixels by which each match is wrong at least; infinite where it can only be wrong.

        A pose tells the distance from the epipolar line. Of points set by hand each is judged by its nearest match, and
        one without a match nearby counts as infinitely wrong, so that N is the number of points.
        """
        if self.pose is not None:
            return epipolar_distance(matches, self.pose)
        if self.homography is not None:
            true = transform(matches.keypoints0.astype(np.float64), self.homography)
            seen = np.isfinite(true).all(-1)
            seen &= inside(np.where(seen[:, None], true, -1e9), query)
            return np.where(seen, np.linalg.norm(matches.keypoints1 - np.where(seen[:, None], true, 0), axis=1), np.inf)
        if self.points is not None:
            return _errors_at(self.points, matches)
        return np.full(len(matches), np.inf)


def _errors_at(points: np.ndarray, matches: RawMatches) -> np.ndarray:
    if not len(matches):
        return np.full(len(points), np.inf)
    away = np.linalg.norm(points[:, None, :2] - matches.keypoints0[None], axis=-1)  # (points, matches)
    nearest = away.argmin(1)
    off = np.linalg.norm(matches.keypoints1[nearest] - points[:, 2:], axis=1)
    away = away.min(1)
    return np.where(away <= REACH, np.maximum(off - STRETCH * away, 0), np.inf)


def read_pair_list(path: Path, images: Path) -> list[ListedPair]:
    """All pairs of a list, in its order; empty lines and lines that begin with # are left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    pairs = [
        _pair(line.split(), Path(images), Path(path).parent, f"{path} line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not pairs:
        raise FormatError(f"{path} lists no pair")
    return pairs


def _pair(words: list[str], images: Path, beside: Path, where: str) -> ListedPair:
    if len(words) < 3:
        raise FormatError(
            f"{where}: {' '.join(words)!r} names no truth: a pose, a homography, points, or the word none"
        )
    names, truth = words[:2], words[2:]
    first, second = (images / name for name in names)
    for file in (first, second):
        if not file.is_file():
            raise FormatError(f"{where}: there is no image {file}")
    name = " ".join(names)
    if len(words) == WORDS and truth[0] != "points":
        return ListedPair("pose", name, first, second, pose=pose_pair(words, images, where))
    if truth == ["none"]:
        return ListedPair("none", name, first, second)
    if truth[0] == "points":
        numbers = _numbers(truth[1:], where)
        if not numbers.size or numbers.size % 4:
            raise FormatError(f"{where}: {numbers.size} numbers after points; each place takes four, x0 y0 x1 y1")
        return ListedPair("points", name, first, second, points=numbers.reshape(-1, 4))
    if len(truth) == 1:
        return ListedPair("homography", name, first, second, homography=read_homography(beside / truth[0]))
    if len(truth) == 9:
        return ListedPair(
            "homography", name, first, second, homography=checked_homography(_numbers(truth, where), where)
        )
    raise FormatError(
        f"{where}: {len(truth)} words after the images; a pose takes {WORDS - 2}, a homography 9 or the name of its file, "
        "places the word points and four numbers each"
    )


def _numbers(words: list[str], where: str) -> np.ndarray:
    try:
        numbers = np.array(words, float)
    except ValueError as error:
        raise FormatError(f"{where}: {error}") from None
    if not np.isfinite(numbers).all():
        raise FormatError(f"{where}: not all of it are finite numbers")
    return numbers
