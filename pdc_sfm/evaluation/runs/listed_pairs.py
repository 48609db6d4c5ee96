"""How right matches are on listed pairs, and how often they are wrong but sure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.evaluation.datasets.pair_list import KINDS, ListedPair
from pdc_sfm.evaluation.measures.calibration import Calibration
from pdc_sfm.evaluation.measures.relative_poses import POSE_THRESHOLDS, pose_auc
from pdc_sfm.evaluation.runs.pose_pairs import KnownCameraSettings, can_be_right, pose_errors
from pdc_sfm.evaluation.tables import number, percent, table
from pdc_sfm.images import fitted_size, read_photograph
from pdc_sfm.matcher import Matcher
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size
from pdc_sfm.sift import sift_matches

RIGHT, WRONG = 5.0, 20.0  # pixels within which a match is right, and beyond which it is wrong by any account
HIGH_CONFIDENCE = 0.5  # above which a match says that it is right


@dataclass
class ListScores:
    """Figures of one method on the pairs of one kind, gathered pair by pair."""

    matches: list[int] = field(default_factory=list)
    right: list[float] = field(default_factory=list)  # share of the matches (of the points, where these are known)
    wrong: list[float] = field(default_factory=list)
    sure_wrong: list[int] = field(default_factory=list)  # matches that are wrong and above HIGH_CONFIDENCE
    degrees: list[float] = field(default_factory=list)  # pose errors: the larger of rotation and translation
    calibration: Calibration = field(default_factory=Calibration)  # of the matches

    def summary(self) -> dict[str, float]:
        """Means over the pairs; AUC where there are poses."""
        out: dict[str, float] = {"pairs": len(self.matches)}
        for name in ("matches", "right", "wrong", "sure_wrong"):
            out[name] = float(np.mean(getattr(self, name)))
        if self.degrees:
            out["median"] = float(np.median(self.degrees))
            out |= {f"auc_{t:g}": auc for t, auc in zip(POSE_THRESHOLDS, pose_auc(np.array(self.degrees)))}
        return out


def evaluate_list(
    pairs: Iterable[ListedPair],
    matcher: Matcher,
    settings: KnownCameraSettings,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Figures by kind and method, and each pair's."""
    scores: dict[str, dict[str, ListScores]] = {}
    rows: list[dict[str, Any]] = []
    for pair in pairs:
        files = (pair.image0, pair.image1)
        photographs = [read_photograph(path) for path in files]
        found = {"ours": matcher.match(*(matcher.encode(one, str(path)) for one, path in zip(photographs, files)))}
        images = [photograph.pixels for photograph in photographs]
        if settings.sift:
            found["sift"] = RawMatches(*sift_matches(*images))
        row: dict[str, Any] = {"pair": pair.name, "kind": pair.kind}
        sizes = [image.shape[1::-1] for image in images]
        for method, matches in found.items():
            kind = scores.setdefault(pair.kind, {}).setdefault(method, ListScores())
            row[method] = score(pair, matches, sizes, kind, settings)
        kind = scores[pair.kind]["ours"]
        kind.calibration.add(*confidence_and_truth(pair, found["ours"], sizes[1], settings.dense))
        rows.append(row)
        if progress:
            progress(pair.name)
    groups = {kind: {name: s.summary() for name, s in scores[kind].items()} for kind in KINDS if kind in scores}
    ours = {kind: scores[kind]["ours"].calibration for kind in groups}
    known = {kind: found.summary() for kind, found in ours.items() if found.sums.any()}
    return {"kinds": groups, "calibration": known, "pairs": rows}


def score(
    pair: ListedPair, matches: RawMatches, sizes: list, scores: ListScores, settings: KnownCameraSettings
) -> dict[str, float]:
    """Add a pair's matches; returns its figures."""
    errors = pair.errors(matches, sizes[1])
    scores.matches.append(len(matches))
    scores.right.append(float(np.mean(errors <= RIGHT)) if len(errors) else 0.0)
    scores.wrong.append(float(np.mean(errors > WRONG)) if len(errors) else 0.0)
    of_matches = len(errors) == len(matches) and pair.kind != "points"
    scores.sure_wrong.append(int(((errors > WRONG) & (matches.scores > HIGH_CONFIDENCE)).sum()) if of_matches else 0)
    figures = {name: getattr(scores, name)[-1] for name in ("matches", "right", "wrong", "sure_wrong")}
    if pair.pose is not None:
        scores.degrees.append(max(pose_errors(pair.pose, matches, sizes, settings)))
        figures["degrees"] = scores.degrees[-1]
    return figures


def confidence_and_truth(
    pair: ListedPair, matches: RawMatches, size: Size, dense: DenseSettings
) -> tuple[np.ndarray, np.ndarray]:
    """What is stated of the matches (N,), and whether they are right: less than a pixel of the network's input off.

    Of a pose only that they can be right is known (`can_be_right`). A homography tells the length of the error, which is no
    less than its larger component. Places set by hand are too few and too rough.
    """
    if pair.kind == "points":
        return np.zeros(0), np.zeros(0, bool)
    if pair.pose is not None:
        return matches.scores, can_be_right(pair.pose, matches, size, dense)
    seen = fitted_size(size, dense.min_side, dense.max_side)[0] / size[0]
    return matches.scores, pair.errors(matches, size) * seen < 1


def text(result: dict[str, Any], title: str) -> str:
    """A row for each kind and method. SIFT's scores are no probabilities: how sure it is cannot be said."""
    head = ["truth", "method", "pairs", "matches", f"<={RIGHT:g} px", f">{WRONG:g} px", "sure of it", "median"]
    head += [f"AUC@{t:g}" for t in POSE_THRESHOLDS]
    rows = []
    for kind, methods in result["kinds"].items():
        for method, s in methods.items():
            sure = "-" if method == "sift" or kind == "points" else number(s["sure_wrong"], 1)
            poses = [percent(s.get(f"auc_{t:g}")) for t in POSE_THRESHOLDS]
            right, wrong = percent(s["right"]), percent(s["wrong"])
            row = [kind, method, str(s["pairs"]), number(s["matches"], 0), right, wrong, sure]
            rows.append([*row, number(s.get("median"), 1), *poses])
    return table(head, rows, title)
