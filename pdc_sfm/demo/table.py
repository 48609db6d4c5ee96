"""The result of a run as a row, and rows as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.colmap.io.models import load_model, summarize
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.types import Reconstruction
from pdc_sfm.evaluation.measures.poses import RECALL_THRESHOLDS, localization_recall, pose_error

GROUPS = ("day", "night")


def model_row(method: str, model: Path | Reconstruction, images: int) -> dict[str, Any]:
    """Figures of a model. An image is registered if it sees points of the model: with known poses all have a pose."""
    model = model if isinstance(model, Reconstruction) else load_model(model)
    figures = summarize(model, images)
    return {
        "method": method,
        "images": images,
        "registered": sum(model.image(i).num_points3D > 0 for i in model.reg_image_ids()),
        "points": figures.points,
        "track_length": round(figures.mean_track_length, 3),
        "reprojection_error": round(figures.reprojection_error, 3),
        "queries": {},
    }


def empty_row(method: str, images: int) -> dict[str, Any]:
    """The row of a method that made no model."""
    row = dict.fromkeys(("points", "registered"), 0) | {"track_length": 0.0, "reprojection_error": 0.0}
    return {"method": method, "images": images, **row, "queries": {}}


def localization_record(results: Path, true: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Errors of each query, `true` being cam_from_world (3, 4) by name; the names begin with their group."""
    poses = read_poses(results) if results.is_file() else {}
    logs_path = Path(f"{results}_logs.json")
    logs = json.loads(logs_path.read_text(encoding="utf-8"))["queries"] if logs_path.is_file() else {}
    queries = {}
    for name, pose in true.items():
        log = logs.get(name, {})
        metres, degrees = pose_error(poses[name], pose) if name in poses else (None, None)
        queries[name] = {
            "group": name.split("/")[0],
            "localized": name in poses,
            "inliers": log.get("inliers", 0),
            "probability": log.get("probability"),
            "metres": metres,
            "degrees": degrees,
            "reason": log.get("reason", "" if name in poses else "nothing retrieved"),
        }
    return {"thresholds": [list(limits) for limits in RECALL_THRESHOLDS], "queries": queries}


def recalls(results: Path, true: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Recall of each group of queries."""
    poses = read_poses(results) if results.is_file() else {}
    groups = {}
    for group in GROUPS:
        wanted = {name: pose for name, pose in true.items() if name.startswith(f"{group}/")}
        if wanted:
            found = sum(name in poses for name in wanted)
            recall = [round(share, 4) for share in localization_recall(poses, wanted)]
            groups[group] = {"count": len(wanted), "localized": found, "recall": recall}
    return groups


def format_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of a run under two lines of heading; recall in per cent of the queries of each group."""
    groups = [group for group in GROUPS if any(group in row["queries"] for row in rows)]
    limits = "".join(f"{f'{metres:g}m {degrees:g}°':>10}" for metres, degrees in RECALL_THRESHOLDS)
    above, heading = " " * 47, f"{'':<10} {'registered':>10} {'points':>9} {'track':>6} {'error':>8}"
    for group in groups:
        count = max(row["queries"][group]["count"] for row in rows if group in row["queries"])
        above += f"{f'{group} queries ({count})':>32}"
        heading += f"  {limits}"
    lines = [above, heading] if groups else [heading]
    for row in rows:
        registered = f"{row['registered']}/{row['images']}"
        line = f"{row['method']:<10} {registered:>10} {row['points']:>9,}"
        line += f" {row['track_length']:>6.2f} {row['reprojection_error']:>5.2f} px"
        for group in groups:
            found = row["queries"].get(group, {"recall": (0.0,) * len(RECALL_THRESHOLDS)})
            line += "  " + "".join(f"{100 * share:>8.1f} %" for share in found["recall"])
        lines.append(line)
    return "\n".join(lines)
