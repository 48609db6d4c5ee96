"""Two-view pose estimation (Sec. 4.4): matches with P_1 > 0.1 of images at one size, five points, RANSAC, 1 px / focal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdc_sfm.colmap.localization.relative_pose import RelativePoseSettings, estimate_relative_pose
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.evaluation.datasets.pose_pair import PosePair, epipolar_distance
from pdc_sfm.evaluation.measures.calibration import Calibration
from pdc_sfm.evaluation.measures.match_scores import MatchScores
from pdc_sfm.evaluation.measures.poses import relative_pose_error
from pdc_sfm.images import fitted_size, read_image
from pdc_sfm.matcher import Matcher
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size, to_colmap
from pdc_sfm.sift import sift_matches

NEAR = 2.0  # original pixels from the true epipolar line within which a match can be right


@dataclass(frozen=True)
class PosePairSettings:
    """The paper's: smallest side 480, P_1 > 0.1 of one direction, at a quarter of the resolution."""

    dense: DenseSettings = field(default_factory=DenseSettings)
    select: SelectSettings = field(default_factory=lambda: SelectSettings(directions="forward"))
    pose: RelativePoseSettings = field(default_factory=RelativePoseSettings)
    sift: bool = True  # measure SIFT on the same pairs


@dataclass(frozen=True)
class KnownCameraSettings(PosePairSettings):
    """As in use: matches that agree both ways, and the pose adjusted to all of them."""

    select: SelectSettings = field(default_factory=SelectSettings)
    pose: RelativePoseSettings = field(default_factory=lambda: RelativePoseSettings(refine=True))


@dataclass
class PoseScores:
    """Ours and SIFT's."""

    ours: MatchScores = field(default_factory=MatchScores)
    sift: MatchScores = field(default_factory=MatchScores)
    rows: list[dict] = field(default_factory=list)  # each pair's figures
    calibration: Calibration = field(default_factory=Calibration)  # of our matches, by `can_be_right`


def evaluate_poses(
    pairs: Iterable[PosePair],
    matcher: Matcher,
    settings: PosePairSettings,
    progress: Callable[[str], None] | None = None,
) -> dict[str, PoseScores]:
    """Scores by group, in the order in which the groups occur."""
    groups: dict[str, PoseScores] = {}
    for pair in pairs:
        scores = groups.setdefault(pair.group, PoseScores())
        images = [read_image(path) for path in (pair.image0, pair.image1)]
        codes = [matcher.encode(image, str(path)) for image, path in zip(images, (pair.image0, pair.image1))]
        sizes = [image.shape[1::-1] for image in images]
        row: dict[str, Any] = {"pair": pair.name, "group": pair.group}
        matches = matcher.match(*codes)
        row["ours"] = score_pose(pair, matches, sizes, scores.ours, settings)
        scores.calibration.add(matches.scores, can_be_right(pair, matches, sizes[1], settings.dense))
        if settings.sift:
            row["sift"] = score_pose(pair, RawMatches(*sift_matches(*images)), sizes, scores.sift, settings)
        scores.rows.append(row)
        if progress:
            progress(pair.name)
    return groups


def score_pose(
    pair: PosePair, matches: RawMatches, sizes: list[Size], scores: MatchScores, settings: PosePairSettings
) -> dict[str, float]:
    """Add the matches of a pair; returns its figures, errors in degrees."""
    near = epipolar_distance(matches, pair) <= NEAR
    rotation, translation = pose_errors(pair, matches, sizes, settings)
    scores.counts.append(len(matches))
    scores.epipolar.append(float(near.mean()) if len(near) else 0.0)
    scores.pose_errors.append(max(rotation, translation))
    return {"matches": len(matches), "epipolar": scores.epipolar[-1], "rotation": rotation, "translation": translation}


def pose_errors(
    pair: PosePair, matches: RawMatches, sizes: list[Size], settings: PosePairSettings
) -> tuple[float, float]:
    """Rotation and translation error in degrees of the pose found from matches; infinite if none is found.

    Points and intrinsics are scaled to the size the network saw, so that the threshold of 1 pixel is one of that size.
    """
    points, intrinsics = [], []
    for xy, matrix, size in zip((matches.keypoints0, matches.keypoints1), (pair.intrinsics0, pair.intrinsics1), sizes):
        seen = fitted_size(size, settings.dense.min_side, settings.dense.max_side)
        factor = np.array([seen[0] / size[0], seen[1] / size[1]])
        points.append(to_colmap(xy.astype(np.float64)) * factor)
        intrinsics.append(np.diag([*factor, 1.0]) @ matrix)
    found = estimate_relative_pose(points[0], points[1], intrinsics[0], intrinsics[1], settings.pose)
    if found is None:
        return float("inf"), float("inf")
    return relative_pose_error(found.cam1_from_cam0, pair.cam1_from_cam0)


def can_be_right(pair: PosePair, matches: RawMatches, size: Size, dense: DenseSettings) -> np.ndarray:
    """(N,) bool: the match is no more than sqrt(2) pixels of the network's input off the epipolar line in image1, of `size`.

    Those less than a pixel off in x and y all are; some of the others are too, so that their share is the most that is right.
    """
    seen = fitted_size(size, dense.min_side, dense.max_side)[0] / size[0]
    return epipolar_distance(matches, pair) * seen < np.sqrt(2)
