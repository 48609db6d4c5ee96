"""The built-in scene as a benchmark: true flow, visibility and poses of pairs by day, on other days, and by night."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.pose_pair import PosePair, relative_pose
from pdc_sfm.evaluation.measures.dense_scores import COSTS, RANKINGS, DenseScores
from pdc_sfm.evaluation.measures.match_scores import MatchScores, add_flow_truth
from pdc_sfm.evaluation.runs.pose_pairs import KnownCameraSettings, score_pose
from pdc_sfm.evaluation.tables import number, percent, table
from pdc_sfm.images import fitted_size, read_image
from pdc_sfm.matcher import Matcher
from pdc_sfm.matches.select import SelectSettings, select_matches
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.scenes import SceneTruth
from pdc_sfm.settings import require
from pdc_sfm.sift import sift_matches


@dataclass(frozen=True)
class SceneEvaluationSettings:
    """Which pairs, and how they are matched."""

    database: int = 12  # pairs of database images, spread over all that overlap
    partners: int = 2  # database images for each query: those that show most of it
    min_overlap: float = 0.15  # share of the first image that the second must show
    dense: DenseSettings = field(default_factory=DenseSettings)
    select: SelectSettings = field(default_factory=SelectSettings)

    def __post_init__(self) -> None:
        require(self.database >= 0, f"database={self.database} must not be negative")
        require(self.partners >= 1, f"partners={self.partners} must be at least 1")
        require(0 < self.min_overlap < 1, f"min_overlap={self.min_overlap} must lie between 0 and 1")


@dataclass
class SceneScores:
    """One group of pairs: flow, our matches, SIFT's."""

    dense: DenseScores = field(default_factory=DenseScores)
    ours: MatchScores = field(default_factory=MatchScores)
    sift: MatchScores = field(default_factory=MatchScores)


def scene_pairs(truth: SceneTruth, settings: SceneEvaluationSettings) -> list[tuple[str, str, str]]:
    """(group, first, second): database pairs from much to little overlap, queries with their best images."""
    groups: dict[str, list[str]] = {}
    for name in sorted(truth.cameras):
        groups.setdefault(name.split("/")[0], []).append(name)
    database = groups.pop("db", [])
    near = [(a, b) for i, a in enumerate(database) for b in database[i + 1 : i + 5]]
    ranked = sorted(((truth.overlap(a, b), a, b) for a, b in near), reverse=True)
    enough = [("database", a, b) for share, a, b in ranked if share >= settings.min_overlap]
    places = np.linspace(0, len(enough) - 1, min(settings.database, len(enough))).round().astype(int)
    chosen = [enough[place] for place in places]
    for group, queries in groups.items():
        for query in queries:
            best = sorted(((truth.overlap(query, name), name) for name in database), reverse=True)
            seen = [name for share, name in best if share >= settings.min_overlap][: settings.partners]
            chosen += [(group, query, name) for name in seen]
    if not chosen:
        raise FormatError(f"no two images of {truth.folder} overlap by {settings.min_overlap:.0%}")
    return chosen


def evaluate_scene(
    truth: SceneTruth,
    pairs: list[tuple[str, str, str]],
    matcher: Matcher,
    settings: SceneEvaluationSettings,
    progress: Callable[[str], None] | None = None,
) -> dict[str, SceneScores]:
    """Scores by group."""
    groups: dict[str, SceneScores] = {}
    for group, first, second in pairs:
        scores = groups.setdefault(group, SceneScores())
        images = [read_image(truth.folder / "images" / name) for name in (first, second)]
        codes = [matcher.encode(image, name) for image, name in zip(images, (first, second))]
        forward, backward = matcher.estimator.estimate_both(*codes)
        flow, visible = truth.flow(first, second)
        y, x = np.nonzero(visible)
        points = np.stack([x, y], -1).astype(np.float64)
        size = images[1].shape[1::-1]
        seen = fitted_size(size, settings.dense.min_side, settings.dense.max_side)[0] / size[0]
        scores.dense.add(forward, backward, points, points + flow[y, x], query_seen=seen)
        pose = _pose_pair(truth, first, second)
        found = {"ours": select_matches(forward, backward, settings.select), "sift": RawMatches(*sift_matches(*images))}
        for method, matches in found.items():
            add_flow_truth(getattr(scores, method), matches, flow, visible, size)
            sizes = [image.shape[1::-1] for image in images]
            score_pose(pose, matches, sizes, getattr(scores, method), KnownCameraSettings(dense=settings.dense))
        if progress:
            progress(f"{first} {second}")
    return groups


def _pose_pair(truth: SceneTruth, first: str, second: str) -> PosePair:
    camera0, camera1 = truth.cameras[first], truth.cameras[second]
    relative = relative_pose(camera0.cam_from_world, camera1.cam_from_world)
    images = truth.folder / "images"
    return PosePair(f"{first} {second}", images / first, images / second, camera0.matrix, camera1.matrix, relative)


def summarize(groups: dict[str, SceneScores]) -> dict[str, Any]:
    """Every figure by group."""
    return {
        name: {"dense": s.dense.summary(), "ours": s.ours.summary(), "sift": s.sift.summary()}
        for name, s in groups.items()
    }


def text(summary: dict[str, Any]) -> str:
    """Two tables: the flow, and matches beside SIFT's."""
    rows, lines = [], []
    for group, part in summary.items():
        dense = part["dense"]
        shares = [percent(dense[f"pck_{t}_per_image"]) for t in (1, 3, 5)]
        kept = [percent(dense.get("kept")), percent(dense.get("kept_pck_5"))]
        ause = [number(dense["ause"][cost].get(ranking), 3) for cost in COSTS for ranking in RANKINGS[:1]]
        error = number(dense.get("calibration_error"), 3)
        rows.append([group, str(dense["pairs"]), number(dense["aepe"]), *shares, *kept, error, *ause])
        for method in ("ours", "sift"):
            s = part[method]
            right = [percent(s[name]) for name in ("within_1", "within_5", "epipolar")]
            poses = [number(s["pose_error_median"], 1), *(percent(s[f"pose_auc_{t}"]) for t in (5, 10, 20))]
            lines.append([group, method, number(s["matches"], 0), *right, *poses])
    head = ["pairs", "n", "AEPE", "PCK-1", "PCK-3", "PCK-5", "conf>0.1", "PCK-5 there", "ECE", "AUSE", "AUSE PCK-5"]
    first = table(head, rows, "The scene's flow, over all pixels that both images show (px and %)")
    head = ["pairs", "method", "matches", "<=1 px", "<=5 px", "epi<=2 px", "median", "AUC@5", "AUC@10", "AUC@20"]
    return first + "\n\n" + table(head, lines, "Matches and relative poses compared with SIFT (%, degrees)")
