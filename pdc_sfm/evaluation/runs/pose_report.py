"""Tables of pose evaluations."""

from __future__ import annotations

from typing import Any

from pdc_sfm.evaluation.measures.relative_poses import POSE_THRESHOLDS
from pdc_sfm.evaluation.runs.pose_pairs import NEAR, PoseScores
from pdc_sfm.evaluation.tables import number, percent, table


def summarize(groups: dict[str, PoseScores]) -> dict[str, Any]:
    """Figures by group, of all pairs together, and of each pair."""
    result: dict[str, Any] = {"groups": {}, "pairs": [row for scores in groups.values() for row in scores.rows]}
    everything = PoseScores()
    for scores in groups.values():
        for whole, part in ((everything.ours, scores.ours), (everything.sift, scores.sift)):
            for name, values in vars(part).items():
                getattr(whole, name).extend(values)
        everything.calibration.sums += scores.calibration.sums
    named = groups if len(groups) == 1 else {**groups, "all": everything}
    for name, scores in named.items():
        result["groups"][name] = {"ours": scores.ours.summary()}
        if scores.sift.counts:
            result["groups"][name]["sift"] = scores.sift.summary()
    return {**result, **everything.calibration.summary()}


def text(summary: dict[str, Any], title: str, published: list[list[str]] | None = None) -> str:
    """Rows of groups and methods; published rows, (method, AUC x 3, mAP x 3), come last."""
    head = ["pairs", "method", "matches", f"epi<={NEAR:g} px", "median"]
    head += [f"{measure}@{t:g}" for measure in ("AUC", "mAP") for t in POSE_THRESHOLDS]
    rows = []
    for group, methods in summary["groups"].items():
        for method, s in methods.items():
            scores = [percent(s[f"pose_{m}_{t:g}"]) for m in ("auc", "map") for t in POSE_THRESHOLDS]
            median = number(s["pose_error_median"], 1)
            rows.append([group or "all", method, number(s["matches"], 0), percent(s["epipolar"]), median, *scores])
    for method, *values in published or []:
        rows.append(["published", method, "", "", "", *values])
    return table(head, rows, title)
