"""One method on the built-in scene, ours or SIFT: match, triangulate, retrieve, match queries, localize."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.colmap.io.models import SUMMARY
from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.demo.chain import Chain
from pdc_sfm.demo.settings import DemoSettings
from pdc_sfm.demo.table import localization_record, model_row, recalls
from pdc_sfm.demo.true_cameras import colmap_camera, known_model
from pdc_sfm.files import write_text
from pdc_sfm.pipeline.matching import ListMatcher
from pdc_sfm.run_folder import write_json
from pdc_sfm.scenes import Camera
from pdc_sfm.settings import result_settings
from pdc_sfm.store.pair_lists import read_pairs
from pdc_sfm.store.readers import open_features, open_matches


@dataclasses.dataclass(frozen=True)
class Scene:
    """What all methods are given."""

    images: Path
    pairs: Path  # of database images
    database: Mapping[str, Camera]
    queries: Mapping[str, Camera]
    settings: DemoSettings

    @property
    def true_queries(self) -> dict[str, np.ndarray]:
        """cam_from_world of each query."""
        return {name: camera.cam_from_world for name, camera in self.queries.items()}


@dataclasses.dataclass(frozen=True)
class Method:
    """A matcher, and how it finds database images for queries: `find(pair list)` writes it and says what it found."""

    name: str
    folder: Path  # of its files
    match: ListMatcher
    find: Callable[[Path], str]
    describes: Any  # what decides its matches
    finds: Any  # what decides its retrieval
    prefix: str = ""  # of its steps' names

    def file(self, name: str) -> Path:
        return self.folder / name

    def run(self, chain: Chain, scene: Scene) -> None:
        """All steps."""
        s = scene.settings
        first, last = ("features.h5", "matches.h5"), ("features-query.h5", "matches-query.h5")
        for step, settings, outputs, rest, work in (
            ("match", self.describes, first, "matches.raw", self._match),
            ("triangulate", result_settings(s.triangulation), (f"sfm/{SUMMARY}",), "", self._triangulate),
            ("retrieve", self.finds, ("retrieval.txt",), "retrieval.counts", self._retrieve),
            ("match queries", self.describes, last, "matches-query.raw", self._match_queries),
            ("localize", result_settings(s.localization), ("results.txt",), "", self._localize),
        ):
            paths, more = [self.file(output) for output in outputs], [self.file(rest)] if rest else []
            chain.run(self.prefix + step, settings, paths, functools.partial(work, scene), more)

    def row(self, scene: Scene) -> dict[str, Any]:
        """Its row of the table."""
        row = model_row(self.name, self.file("sfm"), len(scene.database))
        return row | {"queries": recalls(self.file("results.txt"), scene.true_queries)}

    def _match(self, scene: Scene) -> str:
        self.match(scene.images, scene.pairs, self.file("features.h5"), self.file("matches.h5"))
        return describe_matches(scene.pairs, self.file("features.h5"), self.file("matches.h5"))

    def _triangulate(self, scene: Scene) -> str:
        inputs = (scene.images, scene.pairs, self.file("features.h5"), self.file("matches.h5"))
        result = triangulate(known_model(scene.database), *inputs, self.file("sfm"), scene.settings.triangulation)
        result.warn()
        return str(result.summary).partition("registered, ")[2]

    def _retrieve(self, scene: Scene) -> str:
        return self.find(self.file("retrieval.txt"))

    def _match_queries(self, scene: Scene) -> str:
        """With the keypoints of the model, which stay as they are."""
        pairs, features, matches = map(self.file, ("retrieval.txt", "features-query.h5", "matches-query.h5"))
        if not pairs.read_text(encoding="utf-8").strip():
            return "nothing was retrieved"
        self.match(scene.images, pairs, features, matches, self.file("features.h5"))
        return describe_matches(pairs, features, matches)

    def _localize(self, scene: Scene) -> str:
        pairs, features, matches, results = map(
            self.file, ("retrieval.txt", "features-query.h5", "matches-query.h5", "results.txt")
        )
        # day/0001.jpg and night/0001.jpg differ in the folder
        settings = dataclasses.replace(scene.settings.localization, prepend_camera_name=True)
        if pairs.read_text(encoding="utf-8").strip():
            cameras = {name: colmap_camera(camera) for name, camera in scene.queries.items()}
            said = str(localize(self.file("sfm"), cameras, pairs, features, matches, results, settings))
        else:
            write_text(results, "")
            said = f"0 of {len(scene.queries)} queries localized"
        write_json(self.file("localization.json"), localization_record(results, scene.true_queries))
        return said


def describe_matches(pairs: Path, features: Path, matches: Path) -> str:
    """How many there are."""
    listed = read_pairs(pairs)
    with open_matches(matches) as match_file, open_features(features) as feature_file:
        found = sum(len(match_file.matches(*pair)[0]) for pair in listed)
        names = {name for pair in listed for name in pair}
        keypoints = sum(len(feature_file.keypoints(name).points) for name in names if name in feature_file)
    return f"{found:,} matches of {len(listed)} pairs, {keypoints:,} keypoints of {len(names)} images"
