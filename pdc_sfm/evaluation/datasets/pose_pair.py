"""Two images with known cameras: what they are to each other, and how far matches are from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import to_colmap


@dataclass(frozen=True)
class PosePair:
    """Two images with known cameras. Intrinsics (3, 3) are COLMAP's: (0, 0) is the corner of the image."""

    name: str
    image0: Path
    image1: Path
    intrinsics0: np.ndarray
    intrinsics1: np.ndarray
    cam1_from_cam0: np.ndarray  # (3, 4)
    group: str = ""


def relative_pose(pose0: np.ndarray, pose1: np.ndarray) -> np.ndarray:
    """cam1_from_cam0 (3, 4) of two cam_from_world poses."""
    rotation = pose1[:, :3] @ pose0[:, :3].T
    return np.c_[rotation, pose1[:, 3] - rotation @ pose0[:, 3]]


def epipolar_distance(matches: RawMatches, pair: PosePair) -> np.ndarray:
    """Distance of each match's second point from the true epipolar line of its first, (N,) original pixels."""
    rotation, t = pair.cam1_from_cam0[:, :3], pair.cam1_from_cam0[:, 3]
    cross = np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])
    fundamental = np.linalg.inv(pair.intrinsics1).T @ cross @ rotation @ np.linalg.inv(pair.intrinsics0)
    x0, x1 = (
        np.c_[to_colmap(xy.astype(np.float64)), np.ones(len(matches))]
        for xy in (matches.keypoints0, matches.keypoints1)
    )
    lines = x0 @ fundamental.T  # (N, 3), a x + b y + c = 0 in the second image
    return np.abs((lines * x1).sum(1)) / np.maximum(np.linalg.norm(lines[:, :2], axis=1), 1e-12)
