"""The folder of a run: where each step puts its files, and the record of what was done. The report reads it.

    run.json             record: kind, finished, settings, versions, machine, steps, metrics (below)
    images/              the images; of the user's own photographs, links to those that can be read
    masks/               links to the masks of the photographs, if some were given
    cameras.json         true cameras of the built-in scene (`pdc_sfm.scenes.read_cameras`); absent for photographs
    pairs.txt            pairs that were matched for the model
    features.h5          keypoints of the model's images (hloc)          matches.raw/  raw matches with confidence
    matches.h5           matches of pairs.txt (hloc)
    sfm/                 COLMAP model, points.ply, summary.json
    retrieval.txt        pairs `query database`, best first (hloc); of more than 60 photographs, each is a query
    retrieval.json       {"queries": {query: [[database image, confident matches], ...]}, "unmatched": [query, ...]}
    features-query.h5    keypoints of the queries, and of the model's images again      scene only, as all that follows
    matches-query.h5     matches of retrieval.txt                        matches-query.raw/  raw matches
    queries.txt          NAME MODEL W H PARAMS... of the queries
    results.txt          poses: `name qw qx qy qz tx ty tz`, camera from world; results.txt_logs.json: inliers to draw
    localization.json    {"thresholds": [[metres, degrees] x 3], "queries": {name: {"group": "day" or "night",
                         "localized": bool, "inliers": int, "metres": float or null, "degrees": float or null,
                         "reason": why not}}}
    sift.json            the same queries by SIFT, as localization.json, and its row: {"row": metrics row, "queries": ...}
    sift/                SIFT's files: features.h5, matches.h5, sfm/, results.txt
    report.html
    log.txt              what was said, with the time; of every time the command ran

run.json:
    kind       "scene" or "images"
    finished   whether all steps are done
    steps      [{"name", "seconds", "summary"}] in order; seconds are those of the run that did the step
    metrics    rows of the table: [{"method", "images", "registered", "points", "track_length", "reprojection_error",
               "queries": {"day": {"count", "localized", "recall": [3 fractions]}, "night": ...} or {}}]
Any of the files may be missing: a run may have been stopped, or a step may have failed.
"""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from pdc_sfm.errors import FormatError
from pdc_sfm.files import write_text

RECORD = "run.json"
LOG = "log.txt"
PACKAGES = ("pdc-sfm", "torch", "numpy", "scipy", "opencv-python-headless", "h5py", "pycolmap")


class RunFolder:
    """A run's folder and its record, which is rewritten after every change."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.record: dict[str, Any] = {}
        if (self.path / RECORD).is_file():
            self.record = read_record(self.path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def begin(self, kind: str, settings: dict[str, Any]) -> None:
        """Describe the run. Times of steps that were done before are kept."""
        steps = self.record.get("steps", []) if self.record.get("kind") == kind else []
        self.record = {
            "kind": kind,
            "finished": False,
            "settings": settings,
            "versions": versions(),
            "machine": {"system": platform.platform(), "cores": os.cpu_count()},
            "steps": steps,
            "metrics": [],
        }
        self.save()

    def note_step(self, name: str, seconds: float, summary: str) -> None:
        """Record a finished step in place of an earlier record of it."""
        step = {"name": name, "seconds": round(seconds, 2), "summary": summary}
        names = [old["name"] for old in self.record["steps"]]
        if name in names:
            self.record["steps"][names.index(name)] = step
        else:
            self.record["steps"].append(step)
        self.save()

    def step(self, name: str) -> dict[str, Any]:
        """The record of a step: name, seconds, summary."""
        steps = {step["name"]: step for step in self.record["steps"]}
        return steps.get(name, {"name": name, "seconds": 0.0, "summary": ""})

    def finish(self, metrics: list[dict[str, Any]]) -> None:
        self.record |= {"metrics": metrics, "finished": True}
        self.save()

    def save(self) -> None:
        write_json(self.path / RECORD, self.record)


def read_record(folder: Path | str) -> dict[str, Any]:
    """The record of a run."""
    path = Path(folder) / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {path}: {error}; is {folder} the folder of a run?") from None
    if not isinstance(record, dict):
        raise FormatError(f"{path} is not the record of a run")
    return record


def write_json(path: Path, content: Any) -> None:
    """JSON that a person can read."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def versions() -> dict[str, str]:
    """Of this package and those that decide its results."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
