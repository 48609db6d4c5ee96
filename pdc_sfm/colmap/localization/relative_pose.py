"""The pose between two calibrated images, from their matches (paper, appendix F: 5 points, RANSAC, 1 px / focal)."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from pdc_sfm.settings import require


@dataclasses.dataclass(frozen=True)
class RelativePoseSettings:
    """How the essential matrix is found."""

    method: Literal["ransac", "magsac"] = "ransac"  # which estimator; magsac: OpenCV's USAC_MAGSAC
    threshold: float = 1.0  # pixels; divided by the focal length
    confidence: float = 0.99999  # of RANSAC: stop when a better pose is less likely than 1 minus this
    refine: bool = False  # then refine the pose on all inliers, robustly (beyond the paper's protocol)

    def __post_init__(self) -> None:
        require(self.threshold > 0, f"threshold={self.threshold} must be above 0 (pixels)")
        require(0 < self.confidence < 1, f"confidence={self.confidence} must lie between 0 and 1")


DEFAULTS = RelativePoseSettings()
MOST_REFINED = 20_000  # matches the adjustment looks at


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
    return _refined(best, rays0, rays1, settings.threshold / focal) if settings.refine and best else best


def _refined(pose: RelativePose, rays0: np.ndarray, rays1: np.ndarray, scale: float) -> RelativePose:
    """The pose with the least Sampson distances, those of outliers bounded; its inliers are those within `scale`."""
    from scipy.optimize import least_squares
    from scipy.spatial.transform import Rotation

    x0, x1 = (np.c_[rays, np.ones(len(rays))] for rays in (rays0, rays1))
    rotation, translation = pose.cam1_from_cam0[:, :3], pose.cam1_from_cam0[:, 3]
    across = np.linalg.svd(translation[None])[2][1:]  # (2, 3): the two ways a direction can turn

    def moved(step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turned = translation + step[3:] @ across
        return Rotation.from_rotvec(step[:3]).as_matrix() @ rotation, turned / np.linalg.norm(turned)

    def distances(step: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        rotated, direction = moved(step)
        a, b = x0[chosen], x1[chosen]
        lines1 = np.cross(direction, a @ rotated.T)  # E x0
        lines0 = np.cross(b, direction) @ rotated  # E^T x1, up to its sign
        size = np.sqrt((lines1[:, :2] ** 2).sum(1) + (lines0[:, :2] ** 2).sum(1))
        return (b * lines1).sum(1) / np.maximum(size, 1e-12)

    every = np.arange(len(x0))
    chosen = every[pose.inliers]
    chosen = chosen[:: -(-len(chosen) // MOST_REFINED)] if len(chosen) > MOST_REFINED else chosen
    if len(chosen) < 6:
        return pose
    found = least_squares(distances, np.zeros(5), loss="cauchy", f_scale=scale / 4, args=(chosen,), x_scale="jac")
    near = np.abs(distances(found.x, every)) < scale
    return RelativePose(np.c_[moved(found.x)], pose.inliers | near) if near.sum() >= pose.inliers.sum() / 2 else pose


def _normalize(points: np.ndarray, intrinsics: np.ndarray) -> np.ndarray:
    """(N, 2) pixels -> (N, 2) directions with third component 1."""
    homogeneous = np.c_[points.astype(np.float64), np.ones(len(points))]
    rays = homogeneous @ np.linalg.inv(intrinsics).T
    return np.ascontiguousarray(rays[:, :2] / rays[:, 2:])
