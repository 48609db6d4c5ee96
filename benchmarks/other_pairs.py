"""The pairs of `others.py`: photographs with true cameras, and rendered ones with true depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import inside

NEAR = 2.0  # pixels of the original image


@dataclass(frozen=True)
class TestPair:
    """Two photographs and how to judge their matches."""

    image0: Path
    image1: Path
    right: Callable[[RawMatches], np.ndarray]  # (N,) bool


def photographs(scenes: Path, count: int) -> list[TestPair]:
    """Neighbors in fountain-P11, one, two and four places apart."""
    from pdc_sfm.evaluation.datasets.known_cameras import neighbor_pairs
    from pdc_sfm.evaluation.datasets.pose_pair import epipolar_distance

    folder = scenes / "fountain-P11"
    pairs = neighbor_pairs(folder / "images", folder / "cameras.json", (1, 2, 4))
    return [
        TestPair(pair.image0, pair.image1, lambda m, pair=pair: epipolar_distance(m, pair) <= NEAR)
        for pair in thinned(pairs, count)
    ]


def rendered(folder: Path, count: int, workers: int) -> list[TestPair]:
    """Pairs of the built-in scene, with true depth; half of them of a query by day or by night."""
    from pdc_sfm.evaluation.runs.scene_pairs import SceneEvaluationSettings, scene_pairs
    from pdc_sfm.scenes import SceneSettings, SceneTruth, write_scene

    write_scene(folder, SceneSettings(database=8, day_queries=2, night_queries=1), workers)
    truth = SceneTruth(folder)
    pairs = thinned(scene_pairs(truth, SceneEvaluationSettings(database=count, partners=1)), count)

    def judge(first: str, second: str) -> Callable[[RawMatches], np.ndarray]:
        from pdc_sfm.evaluation.measures.match_scores import flow_at

        flow, visible = truth.flow(first, second)

        def right(matches: RawMatches) -> np.ndarray:
            true = matches.keypoints0 + flow_at(flow, matches.keypoints0)
            x, y = np.clip(np.rint(matches.keypoints0), 0, np.subtract(visible.shape[::-1], 1)).astype(int).T
            good = np.linalg.norm(true - matches.keypoints1, axis=1) <= NEAR
            return good & visible[y, x] & inside(true, visible.shape[::-1])

        return right

    images = folder / "images"
    return [TestPair(images / first, images / second, judge(first, second)) for _, first, second in pairs]


def thinned(items: Sequence[Any], count: int) -> list[Any]:
    return [items[i] for i in np.unique(np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int))]
