"""A small run folder, as the demo writes it: exact projections go through the real store, mapper and localizer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from photo_fakes import waves
from projections import make_scene, write_features, write_matches, write_model, write_queries

from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.images import write_image
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.run_folder import RunFolder
from pdc_sfm.store.journal import open_raw_store
from pdc_sfm.store.pair_lists import write_pairs

SIZE = (320, 240)
DATABASE = [f"db/{i}.jpg" for i in range(6)]
QUERIES = ["day/<1>.jpg", "night/1.jpg"]  # a name that must not become a tag
RAW_SETTINGS = {"dense": {"min_side": 128}, "select": {"threshold": 0.1, "radius": 1.0}, "weights": "none"}


def make_run(folder: Path) -> RunFolder:
    """A finished run on a scene of six images and two queries."""
    scene = make_scene([*DATABASE, *QUERIES], size=SIZE, model="PINHOLE", params=(250, 250, 160, 120), vary=0)
    run = RunFolder(folder)
    run.begin("scene", {"match": {**RAW_SETTINGS, "weights": "none.safetensors"}, "note": "<b>not bold</b>"})
    for seed, name in enumerate(scene.names):
        write_image(folder / "images" / name, waves(seed, SIZE[::-1]))
    pairs = scene.pairs(DATABASE)
    retrieved = [(query, name) for query in QUERIES for name in DATABASE[:3]]
    write_pairs(folder / "pairs.txt", pairs)
    write_pairs(folder / "retrieval.txt", retrieved)
    for name, listed in (("matches", pairs), ("matches-query", retrieved)):
        write_matches(scene, folder / f"{name}.h5", listed)
        _write_raw(scene, folder / f"{name}.raw", listed)
    write_features(scene, folder / "features.h5", DATABASE)
    write_features(scene, folder / "features-query.h5")
    write_model(scene, folder / "reference", DATABASE)
    inputs = (folder / "images", folder / "pairs.txt", folder / "features.h5", folder / "matches.h5")
    model = triangulate(folder / "reference", *inputs, folder / "sfm")
    write_queries(scene, folder / "queries.txt", QUERIES)
    localize(
        folder / "sfm", folder / "queries.txt", folder / "retrieval.txt", folder / "features-query.h5",
        folder / "matches-query.h5", folder / "results.txt", LocalizationSettings(prepend_camera_name=True),
    )  # fmt: skip
    _write_outcome(run, model.summary)
    return run


def _write_raw(scene, folder: Path, pairs) -> None:
    with open_raw_store(folder, RAW_SETTINGS) as store:
        for number, (first, second) in enumerate(pairs):
            found = scene.matches(first, second)[:: 1 + number % 3]
            points = scene.keypoints[first][found[:, 0]], scene.keypoints[second][found[:, 1]]
            store.append((first, second), RawMatches(*points, np.linspace(0.1, 0.57, len(found))), (SIZE, SIZE))


def _write_outcome(run: RunFolder, summary) -> None:
    day, night = QUERIES
    found = {"group": "day", "localized": True, "inliers": 120, "metres": 0.03, "degrees": 0.2, "reason": ""}
    lost = {"group": "night", "localized": False, "inliers": 4, "metres": None, "degrees": None, "reason": "4 inliers"}
    far = {**found, "group": "night", "metres": 3.0, "degrees": 7.0}
    thresholds = [[0.25, 2], [0.5, 5], [5, 10]]
    _json(run / "localization.json", {"thresholds": thresholds, "queries": {day: found, night: far}})
    _json(run / "sift.json", {"row": {}, "queries": {day: far, night: lost}})
    ranked = {query: [[name, 100 - k, "full"] for k, name in enumerate(DATABASE)] for query in QUERIES}
    _json(run / "retrieval.json", {"queries": ranked, "unmatched": []})
    row = {
        "method": "ours", "images": 6, "registered": summary.registered, "points": summary.points,
        "track_length": summary.mean_track_length, "reprojection_error": summary.reprojection_error,
        "queries": {"day": {"count": 1, "localized": 1, "recall": [1, 1, 1]},
                    "night": {"count": 1, "localized": 1, "recall": [0, 0, 1]}},
    }  # fmt: skip
    run.note_step("match", 12.3, "15 pairs")
    run.finish([row, {**row, "method": "SIFT"}])


def _json(path: Path, content) -> None:
    path.write_text(json.dumps(content))


class ShiftMatcher:
    """Says that every pixel of the reference lies `shift` further in the query, with a probability that falls downwards."""

    def __init__(self, shift=(6.0, -3.0), size=SIZE):
        self.shift, self.size = np.array(shift, np.float32), size
        self.estimator = SimpleNamespace(estimate_both=lambda a, b: (self._estimate(1), self._estimate(-1)))

    def encode(self, image, name="image"):
        return image

    def _estimate(self, sign: int) -> DenseEstimate:
        width, height = self.size[0] // 4, self.size[1] // 4
        flow = np.broadcast_to(sign * self.shift, (height, width, 2)).astype(np.float32)
        log_var = np.broadcast_to(np.float32([0, 8]), (height, width, 2)).copy()
        logits = np.zeros((height, width, 2), np.float32)
        logits[..., 0] = np.linspace(6, -6, height)[:, None]
        return DenseEstimate(flow, log_var, logits, np.ones((height, width), bool), self.size, self.size)
