"""The pose of one query from its 2D-3D correspondences: PnP in RANSAC, refinement, and acceptance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.io.covisibility import covisibility_clusters
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.correspondences import Correspondences, gather
from pdc_sfm.colmap.localization.pose_refinement import inverse_variance, refine_pose
from pdc_sfm.colmap.options import merge_options
from pdc_sfm.settings import require

if TYPE_CHECKING:
    from pdc_sfm.colmap.localization.probability import PoseProbability

SQUARE = 1 / 16  # of the larger side: a cell of the network's coarsest map, whose matches come of one decision
LOSS_SCALE = 0.5  # pixels by which good correspondences are usually wrong; what is farther off counts less


@dataclasses.dataclass(frozen=True)
class PoseSettings:
    """How the pose of a query is estimated."""

    ransac_threshold: float = 12.0  # largest reprojection error of an inlier, pixels
    min_inliers: int = 12  # beyond what chance would give
    # poses tried, each on what the last ones leave; the one that explains most of the picture holds; 1: as hloc
    hypotheses: int = 3
    covisibility_clustering: bool = False  # try each cluster of covisible retrieved images separately
    min_score: float = 0.0  # ignore matches with a lower probability of being right
    best: int = 0  # use only so many correspondences, the most confident ones; 0: all
    # weigh correspondences by their confidence in the last refinement, as ones that err together with their neighbors
    weighted: bool = True

    def __post_init__(self) -> None:
        require(self.ransac_threshold > 0, f"ransac_threshold={self.ransac_threshold} must be above 0 (pixels)")
        require(self.min_inliers >= 3, f"min_inliers={self.min_inliers} must be at least 3")
        require(self.hypotheses >= 1, f"hypotheses={self.hypotheses} must be at least 1")
        require(self.best >= 0, f"best={self.best} must not be negative (0: all)")
        require(self.min_score >= 0, f"min_score={self.min_score} must not be negative")


@dataclasses.dataclass(frozen=True)
class Query:
    """One image to localize, with its matches to images of the model."""

    name: str
    camera: pycolmap.Camera
    keypoints: np.ndarray  # (N, 2) COLMAP coordinates
    found: list[tuple[int, np.ndarray, np.ndarray]]  # image id, matches (M, 2), scores (M,), best retrieved first


@dataclasses.dataclass(frozen=True)
class PoseAttempt:
    """A pose from one set of images of the model, or why there is none."""

    image_ids: list[int]
    correspondences: Correspondences
    estimate: dict[str, Any] | None  # as pycolmap returns it: cam_from_world, num_inliers, inlier_mask
    reason: str = ""
    evidence: float = 0.0  # see `evidence_of`

    @property
    def num_inliers(self) -> int:
        return int(self.estimate["num_inliers"]) if self.estimate else 0


@dataclasses.dataclass(frozen=True)
class LocalizedQuery:
    """All attempts for a query, and which of them holds (None: none)."""

    query: Query
    attempts: list[PoseAttempt]
    best: int | None
    judged: PoseProbability | None = None  # how likely the pose that holds is right

    @property
    def attempt(self) -> PoseAttempt | None:
        return None if self.best is None else self.attempts[self.best]


def localize_query(
    query: Query, lookup: PointLookup, settings: PoseSettings, seed: int = 0, config: Mapping[str, Any] | None = None
) -> LocalizedQuery:
    """Estimate the pose of a query. `config` are further pycolmap options, as in hloc: `estimation`, `refinement`."""
    groups = [[image_id for image_id, _, _ in query.found]]
    if settings.covisibility_clustering:
        groups = covisibility_clusters(groups[0], lookup)
    attempts = []
    for image_ids in groups:
        found = [item for item in query.found if item[0] in image_ids]
        attempts.append(_attempt(query, image_ids, found, lookup, settings, seed, config or {}))
    holding = [number for number, attempt in enumerate(attempts) if attempt.estimate and not attempt.reason]
    best = max(holding, key=lambda number: attempts[number].evidence, default=None)
    return LocalizedQuery(query, attempts, best)


def _attempt(
    query: Query,
    image_ids: list[int],
    found: list[tuple[int, np.ndarray, np.ndarray]],
    lookup: PointLookup,
    settings: PoseSettings,
    seed: int,
    config: Mapping[str, Any],
) -> PoseAttempt:
    correspondences = gather(found, lookup, query.name, settings.min_score)
    if 0 < settings.best < len(correspondences):
        keep = np.zeros(len(correspondences), bool)
        keep[np.argsort(-correspondences.score, kind="stable")[: settings.best]] = True
        correspondences = correspondences.select(keep)
    if len(correspondences) < 3:
        reason = f"{len(correspondences)} correspondences with points of the model"
        return PoseAttempt(image_ids, correspondences, None, reason)
    needed = inliers_needed(len(correspondences), query.camera, settings)
    points = lookup.xyz(correspondences.point_id)

    def estimate_from(chosen: np.ndarray) -> dict[str, Any] | None:
        return _estimate(query, correspondences.select(chosen), points[chosen], settings, seed, config)

    estimate, evidence = _best_hypothesis(query, correspondences, points, estimate_from, settings.hypotheses, needed)
    if estimate is None:
        return PoseAttempt(image_ids, correspondences, None, f"no pose fits its {len(correspondences)} correspondences")
    few = estimate["num_inliers"] < needed
    reason = f"{estimate['num_inliers']} inliers of {len(correspondences)}, {needed} needed" if few else ""
    return PoseAttempt(image_ids, correspondences, estimate, reason, evidence)


def _best_hypothesis(
    query: Query,
    correspondences: Correspondences,
    points: np.ndarray,
    estimate_from: Callable[[np.ndarray], dict[str, Any] | None],
    count: int,
    needed: int,
) -> tuple[dict[str, Any] | None, float]:
    """The pose with the most evidence, and that. Where many matches lie on one thing that looks like another elsewhere,
    the pose with the most inliers can be wrong, and the right one explains what is left."""
    best, most = None, 0.0
    confidence, keypoints = correspondences.mean_score, query.keypoints[correspondences.keypoint]
    left = np.ones(len(correspondences), bool)
    for _ in range(count):
        if best is not None and evidence_of(query, keypoints[left], confidence[left]) <= most:
            break
        estimate = estimate_from(left)
        if estimate is None:
            break
        inliers = np.zeros_like(left)
        inliers[np.flatnonzero(left)[estimate["inlier_mask"]]] = True
        local = estimate["cam_from_world"] * points[inliers]
        errors = np.linalg.norm(query.camera.img_from_cam(local) - keypoints[inliers], axis=1)
        exact = np.nan_to_num(1 / (1 + (errors / LOSS_SCALE) ** 2))  # a point behind the camera has no error
        evidence = evidence_of(query, keypoints[inliers], confidence[inliers] * exact)
        enough = estimate["num_inliers"] >= needed
        if best is None or (enough and evidence > most):
            best, most = {**estimate, "inlier_mask": inliers}, evidence
        if not enough:
            break
        left &= ~inliers
    return best, most


def evidence_of(query: Query, keypoints: np.ndarray, weights: np.ndarray) -> float:
    """What keypoints (N, 2) of weights (N,) say together: the root of the weight in each square of the query, summed.

    Dense matches of one thing are right or wrong together; a second thing says more than as many more of the first. The
    weight is confidence, less where a pose puts a point elsewhere: what looks alike is seldom alike to half a pixel.
    """
    return float(np.sqrt(np.bincount(squares_of(query, keypoints), weights)).sum())


def squares_of(query: Query, keypoints: np.ndarray) -> np.ndarray:
    """(N,) number of the occupied square of each keypoint (N, 2): what lies in one is right or wrong together."""
    side = SQUARE * max(query.camera.width, query.camera.height)
    return np.unique((keypoints // side).astype(np.int64), axis=0, return_inverse=True)[1].reshape(-1)


def correspondence_weights(
    query: Query, keypoints: np.ndarray, confidence: np.ndarray, relative: bool = True
) -> np.ndarray:
    """Inverse variances (N,), `relative` with a mean of 1, of correspondences that err together in their squares.

    Two that err together say no more than one: a square counts once, by its mean confidence, however many matches it has.
    """
    square = squares_of(query, keypoints)
    weights = inverse_variance(confidence) / np.bincount(square)[square]
    return weights / weights.mean() if relative else weights


def inliers_needed(count: int, camera: pycolmap.Camera, settings: PoseSettings) -> int:
    """Random correspondences fall within the threshold of any pose too: ask for clearly more than those."""
    chance = np.pi * settings.ransac_threshold**2 / (camera.width * camera.height)
    # three times the mean and `min_inliers` more are always beyond five standard deviations of a Poisson distribution
    return settings.min_inliers + int(3 * count * min(chance, 1.0))


def _estimate(
    query: Query,
    correspondences: Correspondences,
    points: np.ndarray,
    settings: PoseSettings,
    seed: int,
    config: Mapping[str, Any],
) -> dict[str, Any] | None:
    estimation, refinement = pycolmap.AbsolutePoseEstimationOptions(), pycolmap.AbsolutePoseRefinementOptions()
    estimation.ransac.max_error = settings.ransac_threshold
    estimation.ransac.random_seed = seed
    merge_options(estimation, config.get("estimation"))
    merge_options(refinement, config.get("refinement"))
    keypoints = np.asarray(query.keypoints[correspondences.keypoint], np.float64)
    estimate = pycolmap.estimate_and_refine_absolute_pose(keypoints, points, query.camera, estimation, refinement)
    if estimate is not None and settings.weighted and estimate["num_inliers"] > 6:  # unknowns of a pose
        inliers = estimate["inlier_mask"]
        weights = correspondence_weights(query, keypoints[inliers], correspondences.mean_score[inliers])
        rays = rays_of(query.camera, keypoints[inliers])
        scales = query.camera.mean_focal_length(), LOSS_SCALE
        pose = refine_pose(estimate["cam_from_world"], rays, points[inliers], weights, *scales)
        estimate = {**estimate, "cam_from_world": pose}
    return estimate
