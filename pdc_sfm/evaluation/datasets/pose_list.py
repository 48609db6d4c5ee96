"""YFCC100M and ScanNet in SuperGlue's lists: `image0 image1 rot0 rot1 K0 (9) K1 (9) T_1_from_0 (16)` a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.pose_pair import PosePair

WORDS = 4 + 9 + 9 + 16


def read_pose_list(path: Path, images: Path) -> list[PosePair]:
    """All pairs; the scene is a pair's group if there are a few scenes (YFCC), else none (ScanNet)."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from None
    pairs = [pose_pair(line.split(), images, f"{path} line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not pairs:
        raise FormatError(f"{path} lists no pair")
    return pairs


def pose_pair(words: list[str], images: Path, where: str) -> PosePair:
    """The pair of one line's words."""
    if len(words) != WORDS:
        raise FormatError(f"{where}: {len(words)} words; a pair with ground truth has {WORDS}")
    try:
        numbers = np.array(words[2:], float)
    except ValueError as error:
        raise FormatError(f"{where}: {error}") from None
    if numbers[:2].any():
        raise FormatError(f"{where}: the images are to be turned first: use the list of the original images")
    k0, k1 = numbers[2:11].reshape(3, 3), numbers[11:20].reshape(3, 3)
    pose = numbers[20:].reshape(4, 4)
    name = f"{words[0]} {words[1]}"
    return PosePair(name, images / words[0], images / words[1], k0, k1, pose[:3])
