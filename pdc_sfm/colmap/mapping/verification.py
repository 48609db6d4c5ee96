"""Which matches of a pair agree with one geometry: the known poses', or one estimated from the matches themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pycolmap

from pdc_sfm.settings import require

# pycolmap 4 ignores geometries whose config is unset, without a word: every geometry we write says CALIBRATED.
_CALIBRATED = pycolmap.TwoViewGeometryConfiguration.CALIBRATED


@dataclasses.dataclass(frozen=True)
class VerificationSettings:
    """Geometric verification of matches."""

    max_error: float = 4.0  # pixels; with known poses, in units of each keypoint's own uncertainty (1 px if unknown)
    min_inliers: int = 15  # pairs with fewer are dropped
    max_trials: int = 20000  # of RANSAC, at most
    min_inlier_ratio: float = 0.1  # of a pair's matches that RANSAC reckons with

    def __post_init__(self) -> None:
        require(self.max_error > 0, f"verification.max_error={self.max_error} must be above 0 (pixels)")
        require(self.min_inliers >= 0, f"verification.min_inliers={self.min_inliers} must not be negative")
        require(self.max_trials > 0, f"verification.max_trials={self.max_trials} must be above 0")
        require(
            0 < self.min_inlier_ratio <= 1, f"verification.min_inlier_ratio={self.min_inlier_ratio} must be in (0, 1]"
        )


def unverified(matches: np.ndarray) -> pycolmap.TwoViewGeometry:
    """All (M, 2) matches taken as they are."""
    return pycolmap.TwoViewGeometry(config=_CALIBRATED, inlier_matches=matches.astype(np.uint32))


def epipolar_errors(essential: np.ndarray, rays0: np.ndarray, rays1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of each normalized point to the epipolar line of its partner, in the first and in the second image."""
    homogeneous0, homogeneous1 = (np.c_[rays, np.ones(len(rays))] for rays in (rays0, rays1))
    lines1 = homogeneous0 @ essential.T  # (M, 3)
    lines0 = homogeneous1 @ essential
    residual = np.abs((homogeneous1 * lines1).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):  # a point at the epipole has no line: NaN, refused below
        return tuple(residual / np.linalg.norm(lines[:, :2], axis=1) for lines in (lines0, lines1))


def verify_with_poses(
    cameras: tuple[pycolmap.Camera, pycolmap.Camera],
    cam1_from_cam0: pycolmap.Rigid3d,
    rays: tuple[np.ndarray, np.ndarray],
    uncertainties: tuple[np.ndarray | float, np.ndarray | float],
    matches: np.ndarray,
    settings: VerificationSettings,
) -> pycolmap.TwoViewGeometry:
    """Keep the matches (M, 2) near the epipolar lines of two known poses.

    `uncertainties` are pixels, one for the image or one for each of its keypoints: a keypoint that was rounded to a
    4-pixel cell may lie four times as far from its line as an exact one.
    """
    geometry = pycolmap.TwoViewGeometry(config=_CALIBRATED)
    geometry.cam2_from_cam1 = cam1_from_cam0
    geometry.E = pycolmap.essential_matrix_from_pose(cam1_from_cam0)
    keep = np.ones(len(matches), bool)
    errors = epipolar_errors(geometry.E, rays[0][matches[:, 0]], rays[1][matches[:, 1]])
    for side, (camera, error) in enumerate(zip(cameras, errors)):
        uncertainty = np.broadcast_to(uncertainties[side], len(rays[side]))[matches[:, side]]
        keep &= error <= camera.cam_from_img_threshold(settings.max_error) * uncertainty
    geometry.inlier_matches = matches[keep].astype(np.uint32)
    return geometry


def stationary(
    points: tuple[np.ndarray, np.ndarray],
    matches: np.ndarray,
    max_error: float,
    cameras: tuple[pycolmap.Camera, pycolmap.Camera],
) -> np.ndarray:
    """(M,) bool: matches (M, 2) that stand in one place of both pictures, once the second is turned as most of them say.

    What is held with the camera turns with a picture that was stored upside down, or on its side.
    """
    first, second = (np.asarray(side, np.float64)[column] for side, column in zip(points, matches.T))
    (width, height), size = ((camera.width, camera.height) for camera in cameras[::-1])
    x, y = second.T
    turned = [(x, y), (width - x, height - y)]
    if np.allclose(size, (height, width), atol=max_error):
        turned += [(height - y, x), (y, width - x)]
    still = [np.hypot(first[:, 0] - u, first[:, 1] - v) <= max_error for u, v in turned]
    return max(still, key=np.count_nonzero)


def verify_by_estimation(
    cameras: tuple[pycolmap.Camera, pycolmap.Camera],
    keypoints: tuple[np.ndarray, np.ndarray],
    matches: np.ndarray,
    settings: VerificationSettings,
    seed: int,
) -> pycolmap.TwoViewGeometry:
    """Estimate the geometry of two images from their matches (M, 2) by RANSAC and keep those that agree."""
    options = pycolmap.TwoViewGeometryOptions(min_num_inliers=settings.min_inliers, compute_relative_pose=False)
    options.ransac.max_error = settings.max_error
    options.ransac.max_num_trials = settings.max_trials
    options.ransac.min_inlier_ratio = settings.min_inlier_ratio
    options.ransac.random_seed = seed
    points = (np.asarray(k, np.float64) for k in keypoints)
    geometry = pycolmap.estimate_two_view_geometry(
        cameras[0], next(points), cameras[1], next(points), matches.astype(np.uint32), options
    )
    return geometry if len(geometry.inlier_matches) >= settings.min_inliers else pycolmap.TwoViewGeometry()
