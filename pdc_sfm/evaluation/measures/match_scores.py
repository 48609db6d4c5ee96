"""Sparse matches, ours or SIFT's, judged by where their first points truly lie."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pdc_sfm.evaluation.measures.flow import end_point_error, pck
from pdc_sfm.evaluation.measures.relative_poses import POSE_THRESHOLDS, pose_auc, pose_map
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size, inside, transform

SOUND = 3.0  # pixels; a homography from matches counts if it is this close on average over what both images show
MOST_POINTS = 5000  # more change nothing but the time RANSAC takes


@dataclass
class MatchScores:
    """Gathered pair by pair; what is not known of a pair (its homography, its pose) is left out."""

    counts: list[int] = field(default_factory=list)
    within_1: list[float] = field(default_factory=list)
    within_5: list[float] = field(default_factory=list)
    homography_errors: list[float] = field(default_factory=list)
    pose_errors: list[float] = field(default_factory=list)  # degrees: the larger of rotation and translation
    epipolar: list[float] = field(default_factory=list)  # share of each pair's matches near the epipolar line

    def add_truth(self, matches: RawMatches, true_points: np.ndarray, seen: np.ndarray) -> None:
        """Count what is right: `true_points` (N, 2) is where the query has each first point, if it is `seen` there."""
        errors = np.where(seen, end_point_error(matches.keypoints1, true_points), np.inf)
        self.within_1.append(pck(errors, 1.0) if len(errors) else 0.0)
        self.within_5.append(pck(errors, 5.0) if len(errors) else 0.0)

    def summary(self) -> dict[str, float]:
        """Means over pairs."""
        result = {"matches": float(np.mean(self.counts)) if self.counts else float("nan")}
        for name in ("within_1", "within_5", "epipolar"):
            if getattr(self, name):
                result[name] = float(np.mean(getattr(self, name)))
        if self.homography_errors:
            result["homography_found"] = float(np.mean(np.array(self.homography_errors) <= SOUND))
        if self.pose_errors:
            errors = np.array(self.pose_errors)
            result["pose_error_median"] = float(np.median(errors))
            for threshold, auc, precision in zip(POSE_THRESHOLDS, pose_auc(errors), pose_map(errors)):
                result[f"pose_auc_{threshold:g}"] = auc
                result[f"pose_map_{threshold:g}"] = precision
        return result


def add_flow_truth(
    scores: MatchScores, matches: RawMatches, flow: np.ndarray, visible: np.ndarray | None, query: Size
) -> None:
    """Judge matches by a true flow (H, W, 2) that holds where `visible` (H, W); None: wherever it stays in the query."""
    true = matches.keypoints0 + flow_at(flow, matches.keypoints0)
    seen = inside(true, query)
    if visible is not None and len(matches):
        height, width = visible.shape
        x, y = np.clip(np.rint(matches.keypoints0), 0, (width - 1, height - 1)).astype(int).T
        seen &= visible[y, x]
    scores.add_truth(matches, true, seen)


def flow_at(flow: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A flow (H, W, 2) at points (N, 2), bilinear."""
    from scipy.ndimage import map_coordinates

    # nearest: a cell's center may lie up to half a pixel beyond the outermost ones
    at = points.T[::-1].astype(np.float64)
    return np.stack([map_coordinates(flow[..., c], at, order=1, mode="nearest") for c in (0, 1)], -1)


def homography_error(matches: RawMatches, points: np.ndarray, true_points: np.ndarray) -> float:
    """Mean error at (N, 2) points of the homography that RANSAC finds from matches; infinite if it finds none."""
    import cv2

    if len(matches) < 4:
        return float("inf")
    every = slice(None, None, -(-len(matches) // MOST_POINTS))
    points0, points1 = matches.keypoints0[every], matches.keypoints1[every]
    homography, _ = cv2.findHomography(points0, points1, cv2.USAC_MAGSAC, 2.0, maxIters=5000)
    if homography is None:
        return float("inf")
    error = end_point_error(transform(points, homography / homography[2, 2]), true_points)
    return float(error.mean()) if np.isfinite(error).all() else float("inf")
