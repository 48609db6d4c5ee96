"""The pose between two calibrated images, from their matches (paper, appendix F: 5 points, RANSAC, 1 px / focal)."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from pdc_sfm.settings import require


@dataclasses.dataclass(frozen=True)
class RelativePoseSettings:
    """How the essential matrix is found."""

    method: Literal["ransac", "magsac"] = "ransac"
    threshold: float = 1.0  # pixels; divided by the focal length
    confidence: float = 0.99999

    def __post_init__(self) -> None:
        require(self.threshold > 0, f"threshold={self.threshold} must be above 0 (pixels)")
        require(0 < self.confidence < 1, f"confidence={self.confidence} must lie between 0 and 1")


DEFAULTS = RelativePoseSettings()


@dataclasses.dataclass(frozen=True)
class RelativePose:
    """`cam1_from_cam0` (3, 4) with a translation of length 1, and which matches agree with it."""

    cam1_from_cam0: np.ndarray
    inliers: np.ndarray  # (N,) bool


def estimate_relative_pose(
    points0: np.ndarray,
    points1: np.ndarray,
    intrinsics0: np.ndarray,
    intrinsics1: np.ndarray,
    settings: RelativePoseSettings = DEFAULTS,
) -> RelativePose | None:
    """Pose from (N, 2) matched points and (3, 3) intrinsics of the same pixel convention; None if there is none."""
    import cv2

    if len(points0) < 5:
        return None
    rays0, rays1 = _normalize(points0, intrinsics0), _normalize(points1, intrinsics1)
    focal = np.mean([intrinsics0[0, 0], intrinsics0[1, 1], intrinsics1[0, 0], intrinsics1[1, 1]])
    method = {"ransac": cv2.RANSAC, "magsac": cv2.USAC_MAGSAC}[settings.method]
    essentials, mask = cv2.findEssentialMat(
        rays0, rays1, np.eye(3), method=method, prob=settings.confidence, threshold=settings.threshold / focal
    )
    if essentials is None or mask is None:
        return None
    best: RelativePose | None = None
    for essential in np.split(essentials, len(essentials) // 3):  # five points can have several solutions
        found = cv2.recoverPose(essential, rays0, rays1, np.eye(3), 1e9, mask=mask.copy())
        _, rotation, translation, inliers = found[:4]
        inliers = inliers.ravel() > 0
        if best is None or inliers.sum() > best.inliers.sum():
            best = RelativePose(np.c_[rotation, translation], inliers)
    return best


def _normalize(points: np.ndarray, intrinsics: np.ndarray) -> np.ndarray:
    """(N, 2) pixels -> (N, 2) directions with third component 1."""
    homogeneous = np.c_[points.astype(np.float64), np.ones(len(points))]
    rays = homogeneous @ np.linalg.inv(intrinsics).T
    return np.ascontiguousarray(rays[:, :2] / rays[:, 2:])
