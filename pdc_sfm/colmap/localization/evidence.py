"""Figures for and against the pose of a query, computed without ground truth."""

from __future__ import annotations

import dataclasses

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.pose_refinement import pose_covariance, refine_pose
from pdc_sfm.colmap.localization.query import (
    LOSS_SCALE,
    LocalizedQuery,
    Query,
    correspondence_weights,
    evidence_of,
    squares_of,
)

CELL = 1 / 40  # of the larger side: 16 pixels of 640
FEWEST = 12  # inliers that a pose without the strongest database image needs
MOST = 5000  # inliers that such a pose is fitted to
DEPTH_SHARE = 1 / 60  # of the median depth, in a map without metres: 0.25 m of the 15 m at which houses stand
FARTHEST = 10.0  # tolerances: a pose that is so far off is wrong, however far


@dataclasses.dataclass(frozen=True)
class PoseEvidence:
    """Figures of one pose. A tolerance is the distance and the angle within which a pose is called right."""

    inliers: int
    covered: float  # share of the picture's cells that hold inliers
    confidence: float  # mean of the inliers' probabilities of being right
    support: float  # see `query.evidence_of`
    unexplained: float  # the same of the correspondences that the pose leaves, as a share of both
    images: int  # database images with at least `FEWEST` inliers
    moved: float  # tolerances by which the pose moves without its strongest database image
    angle: float  # degrees between the query's rays and the nearest ones of the database, median
    sigma_position: float  # standard deviations, units of the map and degrees
    sigma_degrees: float
    focal_share: float  # of the position's variance that comes of a focal length that is not known
    tolerance: float  # units of the map

    def sigma(self, degrees: float) -> float:
        """The standard deviation in tolerances: of the position or of the rotation, whichever is larger."""
        return max(self.sigma_position / self.tolerance, self.sigma_degrees / degrees)


def pose_evidence(
    item: LocalizedQuery, lookup: PointLookup, tolerance: float | None, degrees: float, focal_sigma: float = 0.0
) -> PoseEvidence:
    """Figures of the pose that holds. `tolerance` None: `DEPTH_SHARE` of the median depth of what the query shows.

    `focal_sigma` is the relative standard deviation of a focal length that is not known but said, as by EXIF.
    """
    attempt = item.attempt
    assert attempt is not None
    assert attempt.estimate is not None
    query, camera, found = item.query, item.query.camera, attempt.correspondences
    inlier, pose = attempt.estimate["inlier_mask"], attempt.estimate["cam_from_world"]
    every = np.asarray(query.keypoints[found.keypoint], np.float64)
    keypoints, points, confidence = every[inlier], lookup.xyz(found.point_id[inlier]), found.mean_score
    side = max(camera.width, camera.height)
    if tolerance is None:
        tolerance = DEPTH_SHARE * float(np.median((pose * points)[:, 2]))
    fit = _fitted(query, keypoints, points, confidence[inlier])
    covariance, guessed = fit.covariances(pose, squares_of(query, keypoints), focal_sigma)
    votes = found.votes[inlier[found.votes[:, 0]]]
    votes = np.c_[(np.cumsum(inlier) - 1)[votes[:, 0]], votes[:, 1]]
    counts = np.bincount(votes[:, 1], minlength=len(attempt.image_ids))
    left = evidence_of(query, every[~inlier], confidence[~inlier])
    return PoseEvidence(
        inliers=attempt.num_inliers,
        covered=float((_cells(keypoints, CELL * side).max() + 1) * (CELL * side) ** 2 / (camera.width * camera.height)),
        confidence=float(confidence[inlier].mean()),
        support=attempt.evidence,
        unexplained=left / max(left + attempt.evidence, 1e-9),
        images=int((counts >= FEWEST).sum()),
        moved=fit.moved(pose, votes, int(counts.argmax()), tolerance, degrees),
        angle=_angle(pose, points, votes, [lookup.model.image(i).cam_from_world() for i in attempt.image_ids]),
        sigma_position=float(np.sqrt(np.trace(covariance[3:, 3:]))),
        sigma_degrees=float(np.degrees(np.sqrt(np.trace(covariance[:3, :3])))),
        focal_share=float(np.trace(guessed[3:, 3:]) / max(np.trace(covariance[3:, 3:]), 1e-30)),
        tolerance=tolerance,
    )


def covariance_of(item: LocalizedQuery, lookup: PointLookup, focal_sigma: float = 0.0) -> np.ndarray:
    """(6, 6) covariance of the pose that holds, of a small turn (radians) and shift of the camera frame."""
    assert item.attempt is not None
    assert item.attempt.estimate is not None
    found, inlier = item.attempt.correspondences, item.attempt.estimate["inlier_mask"]
    keypoints = np.asarray(item.query.keypoints[found.keypoint[inlier]], np.float64)
    fit = _fitted(item.query, keypoints, lookup.xyz(found.point_id[inlier]), found.mean_score[inlier])
    squares = squares_of(item.query, keypoints)
    return fit.covariances(item.attempt.estimate["cam_from_world"], squares, focal_sigma)[0]


def _fitted(query: Query, keypoints: np.ndarray, points: np.ndarray, confidence: np.ndarray) -> _FittedInliers:
    weights = correspondence_weights(query, keypoints, confidence)
    return _FittedInliers(rays_of(query.camera, keypoints), points, weights, query.camera.mean_focal_length())


@dataclasses.dataclass(frozen=True)
class _FittedInliers:
    """The inliers that a pose is fitted to."""

    rays: np.ndarray  # (C, 2)
    points: np.ndarray  # (C, 3)
    weights: np.ndarray  # (C,)
    focal: float

    def refine(self, pose: pycolmap.Rigid3d, rows: np.ndarray, stretch: float = 1.0) -> pycolmap.Rigid3d:
        """The pose of some rows; `stretch`: as if the focal length were so many times as long."""
        rows = rows[:: -(-len(rows) // MOST)]
        return refine_pose(
            pose, self.rays[rows] / stretch, self.points[rows], self.weights[rows], self.focal, LOSS_SCALE
        )

    def moved(
        self, pose: pycolmap.Rigid3d, votes: np.ndarray, strongest: int, tolerance: float, degrees: float
    ) -> float:
        """Tolerances between the pose and that of the rows that other images vouch for; at most `FARTHEST`."""
        rows = np.unique(votes[votes[:, 1] != strongest, 0])
        if len(rows) < FEWEST:
            return FARTHEST
        other = self.refine(pose, rows)
        distance = np.linalg.norm(_center(other) - _center(pose)) / tolerance
        turned = np.degrees((other.rotation * pose.rotation.inverse()).angle()) / degrees
        return float(min(max(distance, turned), FARTHEST))

    def covariances(
        self, pose: pycolmap.Rigid3d, squares: np.ndarray, focal_sigma: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """(6, 6) covariance of the pose, and the part of it that comes of a focal length that is not known."""
        own = pose_covariance(pose, self.rays, self.points, self.weights, self.focal, LOSS_SCALE, squares)
        guessed = focal_sigma**2 * self.by_focal_length(pose) if focal_sigma else np.zeros((6, 6))
        return own + guessed, guessed

    def by_focal_length(self, pose: pycolmap.Rigid3d) -> np.ndarray:
        """(6, 6) covariance of turn and shift for a focal length with a relative standard deviation of 1."""
        step, every = 0.01, np.arange(len(self.rays))
        other, here = self.refine(pose, every, 1 + step), self.refine(pose, every)
        turn = (other.rotation * here.rotation.inverse()).matrix()
        turned = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
        shift = here.rotation.matrix() @ (_center(here) - _center(other))
        change = np.r_[turned, shift] / step
        return np.outer(change, change)


def _cells(keypoints: np.ndarray, side: float) -> np.ndarray:
    """(N,) number of the occupied square of each keypoint."""
    return np.unique((keypoints // side).astype(np.int64), axis=0, return_inverse=True)[1].reshape(-1)


def _angle(pose: pycolmap.Rigid3d, points: np.ndarray, votes: np.ndarray, database: list[pycolmap.Rigid3d]) -> float:
    """Degrees between the rays of the query and of the database image that sees a point most alike, median."""
    centers = np.stack([_center(other) for other in database])
    ours, theirs = points[votes[:, 0]] - _center(pose), points[votes[:, 0]] - centers[votes[:, 1]]
    cosine = (ours * theirs).sum(1) / np.maximum(np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1), 1e-12)
    nearest = np.full(len(points), -1.0)
    np.maximum.at(nearest, votes[:, 0], cosine)
    return float(np.degrees(np.arccos(np.clip(np.median(nearest), -1, 1))))


def _center(cam_from_world: pycolmap.Rigid3d) -> np.ndarray:
    return np.asarray(cam_from_world.inverse().translation)
