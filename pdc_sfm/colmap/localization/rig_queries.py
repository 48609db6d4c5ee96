"""One pose for the queries that a rig took at the same moment: generalized PnP over all their matches."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.evidence import pose_evidence
from pdc_sfm.colmap.localization.pose_refinement import UNKNOWNS, refine_rig_pose
from pdc_sfm.colmap.localization.probability import DEGREES, PoseProbability, pose_probability
from pdc_sfm.colmap.localization.query import (
    LOSS_SCALE,
    LocalizedQuery,
    PoseAttempt,
    PoseSettings,
    correspondence_weights,
    evidence_of,
    inliers_needed,
)

RigFrame = Mapping[str, pycolmap.Rigid3d]  # queries of one moment, cam_from_rig of each
Done = LocalizedQuery | tuple[str, str]  # a query, or its name and why nothing could be tried


@dataclasses.dataclass(frozen=True)
class FramePose:
    """The pose of a rig at one moment, and what its queries say of it."""

    rig_from_world: pycolmap.Rigid3d
    queries: dict[str, LocalizedQuery]  # those that had matches
    poses: dict[str, pycolmap.Rigid3d]  # cam_from_world of all
    judged: PoseProbability | None  # of the query that is surest: they stand or fall together


def pose_frame(
    frame: RigFrame,
    done: Mapping[str, Done],
    lookup: PointLookup,
    settings: PoseSettings,
    tolerance: float | None,
    focal_sigmas: Mapping[str, float],
    seed: int,
) -> FramePose | None:
    """One pose for all queries of a frame, by all their correspondences; None if none fits enough of them.

    Poses of single queries are tried beside that of RANSAC over all, and the one with the most evidence holds.
    """
    tried = {name: item for name in frame if isinstance(item := done.get(name), LocalizedQuery)}
    views = [_RigView.of(item, frame[name], lookup) for name, item in tried.items()]
    views = [view for view in views if len(view.points)]
    if not views:
        return None
    candidates = [_from_all(views, settings, seed)]
    candidates += [
        frame[name].inverse() * item.attempt.estimate["cam_from_world"]
        for name, item in tried.items()
        if item.attempt is not None and item.attempt.estimate is not None
    ]
    poses = [pose for pose in candidates if pose is not None]
    if not poses:
        return None
    limit = settings.ransac_threshold
    best = max(poses, key=lambda pose: sum(view.evidence(pose, limit) for view in views))
    if sum(int(view.inliers(best, limit).sum()) for view in views) > UNKNOWNS:
        best = _refined(views, best, limit)
    needed = max(inliers_needed(len(view.points), view.item.query.camera, settings) for view in views)
    if sum(int(view.inliers(best, limit).sum()) for view in views) < needed:
        return None
    queries = {view.item.query.name: view.posed(best, limit) for view in views}
    judged = [
        pose_probability(pose_evidence(item, lookup, tolerance, DEGREES, focal_sigmas.get(name, 0.0)))
        for name, item in queries.items()
        if item.attempt is not None and item.attempt.num_inliers >= settings.min_inliers
    ]
    surest = max(judged, key=lambda one: one.probability, default=None)
    queries = {name: dataclasses.replace(item, judged=surest) for name, item in queries.items()}
    return FramePose(best, queries, {name: pose * best for name, pose in frame.items()}, surest)


@dataclasses.dataclass(frozen=True)
class _RigView:
    """A query of a frame with its correspondences."""

    item: LocalizedQuery
    attempt: PoseAttempt
    cam_from_rig: pycolmap.Rigid3d
    keypoints: np.ndarray  # (C, 2)
    points: np.ndarray  # (C, 3)
    confidence: np.ndarray  # (C,)

    @classmethod
    def of(cls, item: LocalizedQuery, cam_from_rig: pycolmap.Rigid3d, lookup: PointLookup) -> _RigView:
        attempt = item.attempt or max(item.attempts, key=lambda one: one.num_inliers)
        found = attempt.correspondences
        keypoints = np.asarray(item.query.keypoints[found.keypoint], np.float64)
        return cls(item, attempt, cam_from_rig, keypoints, lookup.xyz(found.point_id), found.mean_score)

    def errors(self, rig_from_world: pycolmap.Rigid3d) -> np.ndarray:
        """(C,) pixels; infinite behind the camera."""
        local = (self.cam_from_rig * rig_from_world) * self.points
        errors = np.linalg.norm(self.item.query.camera.img_from_cam(local) - self.keypoints, axis=1)
        return np.where(np.isfinite(errors) & (local[:, 2] > 0), errors, np.inf)

    def inliers(self, rig_from_world: pycolmap.Rigid3d, limit: float) -> np.ndarray:
        return self.errors(rig_from_world) <= limit

    def evidence(self, rig_from_world: pycolmap.Rigid3d, limit: float) -> float:
        errors = self.errors(rig_from_world)
        kept = errors <= limit
        weights = self.confidence[kept] / (1 + (errors[kept] / LOSS_SCALE) ** 2)
        return evidence_of(self.item.query, self.keypoints[kept], weights)

    def posed(self, rig_from_world: pycolmap.Rigid3d, limit: float) -> LocalizedQuery:
        """The query with this pose, and its own inliers."""
        inliers = self.inliers(rig_from_world, limit)
        estimate = {
            "cam_from_world": self.cam_from_rig * rig_from_world,
            "num_inliers": int(inliers.sum()),
            "inlier_mask": inliers,
        }
        evidence = self.evidence(rig_from_world, limit)
        attempt = dataclasses.replace(self.attempt, estimate=estimate, reason="", evidence=evidence)
        return LocalizedQuery(self.item.query, [attempt], 0)


def _from_all(views: Sequence[_RigView], settings: PoseSettings, seed: int) -> pycolmap.Rigid3d | None:
    """RANSAC over the correspondences of all views."""
    if sum(len(view.points) for view in views) < 3:
        return None
    options = pycolmap.RANSACOptions(max_error=settings.ransac_threshold, random_seed=seed)
    found = pycolmap.estimate_and_refine_generalized_absolute_pose(
        np.concatenate([view.keypoints for view in views]),
        np.concatenate([view.points for view in views]),
        np.repeat(np.arange(len(views)), [len(view.points) for view in views]).tolist(),
        [view.cam_from_rig for view in views],
        [view.item.query.camera for view in views],
        options,
    )
    return None if found is None else found["rig_from_world"]


def _refined(views: Sequence[_RigView], pose: pycolmap.Rigid3d, limit: float) -> pycolmap.Rigid3d:
    """The pose of least weighted error, each view's squares counting once."""
    parts = []
    for view in views:
        kept, camera = view.inliers(pose, limit), view.item.query.camera
        if not kept.any():
            continue
        turn = np.broadcast_to(view.cam_from_rig.rotation.matrix(), (int(kept.sum()), 3, 3))
        shift = np.broadcast_to(np.asarray(view.cam_from_rig.translation), (int(kept.sum()), 3))
        weights = correspondence_weights(view.item.query, view.keypoints[kept], view.confidence[kept], relative=False)
        focal = np.full(int(kept.sum()), camera.mean_focal_length())
        parts.append((turn, shift, rays_of(camera, view.keypoints[kept]), view.points[kept], weights, focal))
    turns, shifts, rays, points, weights, focal = (np.concatenate(part) for part in zip(*parts))
    return refine_rig_pose(pose, (turns, shifts), rays, points, weights / weights.mean(), focal, LOSS_SCALE)
