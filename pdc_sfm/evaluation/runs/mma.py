"""Sparse matching on HPatches (Sec. 4.3): the 2000 most confident matches of image 1 with images 2 ... 6, MMA at 1 ... 10 px."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.evaluation.datasets.homography_pair import read_homography
from pdc_sfm.evaluation.datasets.hpatches import TOO_LARGE, image_path, sequences
from pdc_sfm.evaluation.measures.flow import end_point_error
from pdc_sfm.evaluation.measures.matching import MMA_THRESHOLDS, MOST_MATCHES, mean_matching_accuracy, most_confident
from pdc_sfm.evaluation.tables import percent, table
from pdc_sfm.images import read_image
from pdc_sfm.matcher import Matcher
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import transform
from pdc_sfm.sift import sift_matches


@dataclass(frozen=True)
class MmaSettings:
    """The paper's: smaller side 600, one direction, ranked by P_1; all cells may be among the 2000."""

    dense: DenseSettings = field(default_factory=lambda: DenseSettings(min_side=600, max_side=None, method="direct"))
    select: SelectSettings = field(default_factory=lambda: SelectSettings(directions="forward", threshold=0.0))
    sift: bool = True  # measure SIFT on the same pairs


@dataclass
class MmaResult:
    """Errors of each pair's matches, by method and kind of sequence."""

    errors: dict[tuple[str, str], list[np.ndarray]] = field(default_factory=dict)  # (method, "v" or "i")

    def accuracy(self, method: str, kinds: str) -> np.ndarray:
        """MMA over the pairs of some kinds, at each threshold."""
        return mean_matching_accuracy([e for kind in kinds for e in self.errors.get((method, kind), [])])

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(method for method, _ in self.errors))

    def summary(self) -> dict[str, Any]:
        parts = {"all": "iv", "illumination": "i", "viewpoint": "v"}
        return {
            method: {
                name: {
                    "pairs": sum(len(self.errors.get((method, k), [])) for k in kinds),
                    "mma": self.accuracy(method, kinds),
                }
                for name, kinds in parts.items()
            }
            for method in self.methods
        }

    def text(self) -> str:
        head = ["sequences", "method", "pairs", *(f"<={t:g} px" for t in MMA_THRESHOLDS)]
        rows = [
            [name, method, str(part["pairs"]), *(percent(v) for v in part["mma"])]
            for method, parts in self.summary().items()
            for name, part in parts.items()
            if part["pairs"]
        ]
        return table(head, rows, f"HPatches, mean matching accuracy of the {MOST_MATCHES} most confident matches (%)")


def evaluate_mma(
    folder: Path, matcher: Matcher, settings: MmaSettings, limit: int | None = None, progress: Callable | None = None
) -> MmaResult:
    """All sequences of D2-Net's protocol, or the first `limit`."""
    result = MmaResult()
    for sequence in itertools.islice(sequences(folder, "iv", TOO_LARGE), limit):
        first = read_image(image_path(sequence, 1))
        code = matcher.encode(first, str(sequence))
        for number in range(2, 7):
            image = read_image(image_path(sequence, number))
            matches = {"ours": matcher.match(code, matcher.encode(image, str(sequence)))}
            if settings.sift:
                matches["SIFT"] = RawMatches(*sift_matches(first, image))
            homography = read_homography(sequence / f"H_1_{number}")
            for method, found in matches.items():
                errors = match_errors(found, homography)
                result.errors.setdefault((method, sequence.name[0]), []).append(errors)
            if progress:
                progress(f"{sequence.name} {number}")
    return result


def match_errors(matches: RawMatches, homography: np.ndarray) -> np.ndarray:
    """Distances, original pixels of the second image, of the most confident matches from where the homography says."""
    best = matches.select(most_confident(matches.scores))
    if len(best) == 0:
        return np.zeros(0)
    depth = np.c_[best.keypoints0, np.ones(len(best))] @ homography[2]
    landed = transform(best.keypoints0, homography * np.sign(np.median(depth)))
    return np.nan_to_num(end_point_error(best.keypoints1, landed), nan=np.inf)
