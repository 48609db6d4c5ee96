"""The record of a localization: hloc's log, and plain JSON for the report."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.query import LocalizedQuery, PoseAttempt
from pdc_sfm.pixels import from_colmap

if TYPE_CHECKING:
    from pdc_sfm.colmap.localization.localize_sfm import LocalizationResult

SHOWN = 200  # inliers recorded for pictures


def hloc_log(item: LocalizedQuery, clustered: bool) -> dict[str, Any]:
    """The log of one query with the keys of hloc's `localize_sfm`."""
    logs = [_attempt_log(item, attempt) for attempt in item.attempts]
    if not clustered:
        return {**logs[0], "covisibility_clustering": False}
    return {
        "db": [image_id for image_id, _, _ in item.query.found],
        "best_cluster": item.best,
        "log_clusters": logs,
        "covisibility_clustering": True,
    }


def _attempt_log(item: LocalizedQuery, attempt: PoseAttempt) -> dict[str, Any]:
    found = attempt.correspondences
    ends = np.searchsorted(found.votes[:, 0], np.arange(len(found) + 1)).tolist()
    voters, points = found.votes[:, 1].tolist(), found.point_id.tolist()
    to_images = [(point, voters[start:end]) for point, start, end in zip(points, ends, ends[1:])]
    estimate = {**attempt.estimate, "camera": item.query.camera} if attempt.estimate else None
    return {
        "db": attempt.image_ids,
        "PnP_ret": estimate,
        "keypoints_query": item.query.keypoints[found.keypoint],
        "points3D_ids": points,
        "points3D_xyz": None,
        "num_matches": found.num_matches,
        "keypoint_index_to_db": (found.keypoint.tolist(), to_images),
    }


def json_record(
    done: list[LocalizedQuery | tuple[str, str]], result: LocalizationResult, lookup: PointLookup
) -> dict[str, Any]:
    """Everything that a report or a table needs, without pickles: status, counts, and some inliers to draw."""
    queries: dict[str, Any] = {}
    for item in done:
        name = item[0] if isinstance(item, tuple) else item.query.name
        status = "fallback" if name in result.fallback else "failed" if name in result.failed else "localized"
        entry: dict[str, Any] = {"status": status, "reason": result.failed.get(name, "")}
        if isinstance(item, LocalizedQuery):
            attempt = item.attempt or max(item.attempts, key=lambda a: a.num_inliers)
            entry["retrieved"] = [lookup.model.image(image_id).name for image_id, _, _ in item.query.found]
            entry["matches"] = attempt.correspondences.num_matches
            entry["correspondences"] = len(attempt.correspondences)
            entry["inliers"] = attempt.num_inliers
            if item.judged is not None:
                entry["probability"] = round(item.judged.probability, 3)
                entry["doubt"] = result.doubts.get(name, "")
                entry["evidence"] = {
                    key: _rounded(value) for key, value in dataclasses.asdict(item.judged.evidence).items()
                }
            entry.update(shown_inliers(item, attempt, lookup) if attempt.estimate else {})
        queries[name] = entry
    return {"summary": str(result), "left_out": result.left_out, "queries": queries}


def _rounded(value: float) -> float:
    """Four digits."""
    return float(f"{value:.4g}")


def shown_inliers(item: LocalizedQuery, attempt: PoseAttempt, lookup: PointLookup) -> dict[str, Any]:
    """The database image with most inliers, and some of these as [x, y, x, y] (query, database), the surest first."""
    assert attempt.estimate is not None
    found, inlier = attempt.correspondences, attempt.estimate["inlier_mask"]
    votes = found.votes[inlier[found.votes[:, 0]]]
    if len(votes) == 0:
        return {}
    best = int(np.bincount(votes[:, 1]).argmax())
    rows = votes[votes[:, 1] == best, 0]
    rows = rows[np.argsort(-found.score[rows], kind="stable")]
    rows = rows[np.linspace(0, len(rows) - 1, min(SHOWN, len(rows))).astype(int)]  # of all parts of the image
    image = lookup.model.image(attempt.image_ids[best])
    keypoint_of = {int(p): k for k, p in enumerate(lookup.point_ids(attempt.image_ids[best]))}
    seen = np.array([image.points2D[keypoint_of[int(p)]].xy for p in found.point_id[rows]])
    drawn = np.c_[from_colmap(item.query.keypoints[found.keypoint[rows]]), from_colmap(seen)]
    return {"best_image": image.name, "shown": np.round(drawn, 1).tolist()}
