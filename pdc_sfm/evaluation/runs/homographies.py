"""Benchmarks with homographies as truth: pairs made from any photographs, from easy to hard, and photographs of planes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.evaluation.datasets.homography_pair import load_pair
from pdc_sfm.evaluation.datasets.homography_sets import PlanePair
from pdc_sfm.evaluation.measures.dense_scores import CONFIDENT, DenseScores
from pdc_sfm.evaluation.measures.match_scores import MatchScores, add_flow_truth, homography_error
from pdc_sfm.images import fitted_size
from pdc_sfm.matcher import Matcher, match_images
from pdc_sfm.matches.select import SelectSettings, select_matches
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.settings import require
from pdc_sfm.sift import sift_matches
from pdc_sfm.synthetic.appearance import PhotometricSettings
from pdc_sfm.synthetic.pairs import PhotoSource, SyntheticPair, SyntheticPairSettings, fixed_pairs, make_pair
from pdc_sfm.synthetic.warps import WarpSettings

_VIEW = WarpSettings(homography=1, affine=0, tps=0, mixed=0, moderate=1, rotated=0, strong=0)
_ZOOM = WarpSettings(
    homography=1, affine=0, tps=0, mixed=0, moderate=0, rotated=0, strong=1, max_rotation=10, moderate_rotation=10,
    max_tilt=20, max_zoom=2, max_shift=0.2,
)  # fmt: skip
_STRONG = WarpSettings(
    homography=1, affine=0, tps=0, mixed=0, moderate=0, rotated=0, strong=1, max_rotation=10, moderate_rotation=10,
    max_tilt=20, max_zoom=5, max_shift=0.2, min_in_view=0.03,
)  # fmt: skip
_TURNED = WarpSettings(homography=1, affine=0, tps=0, mixed=0, moderate=0, rotated=1, strong=0)
_NOTHING = dict.fromkeys(("color", "gray", "shading", "shadow", "night", "blur", "motion", "noise", "jpeg"), 0.0)

# kind -> how its views differ, and how light and camera do
KINDS: dict[str, tuple[WarpSettings, dict[str, float]]] = {
    "viewpoint": (_VIEW, {"strength": 0}),
    "zoom": (_ZOOM, {"strength": 0}),
    "blur": (_VIEW, {"strength": 1.5, "blur": 1, "motion": 0.3}),
    "light": (_VIEW, {"strength": 1.5, "color": 1, "shading": 0.5, "shadow": 0.5}),
    "night": (_VIEW, {"strength": 1, "night": 0.7, "color": 1}),
    "compression": (_VIEW, {"strength": 1.5, "jpeg": 1, "noise": 0.5}),
    "rotation": (_TURNED, {"strength": 0}),
    "strong zoom": (_STRONG, {"strength": 0}),
}


@dataclass(frozen=True)
class HomographySettings:
    """How many pairs of each kind, at which size, and how they are matched."""

    count: int = 10  # pairs of each kind, and of unrelated photographs
    kinds: tuple[str, ...] = tuple(KINDS)  # which kinds of pairs
    size: tuple[int, int] = (480, 640)  # height and width of the pairs
    seed: int = 0  # another seed, other pairs
    dense: DenseSettings = field(default_factory=DenseSettings)
    select: SelectSettings = field(default_factory=SelectSettings)

    def __post_init__(self) -> None:
        require(self.count >= 1, f"count={self.count} must be at least 1")
        require(min(self.size) >= 64, f"size={self.size}: both sides at least 64")
        for kind in self.kinds:
            require(kind in KINDS, f"kinds={kind} is not possible: choose from {', '.join(KINDS)}")


@dataclass
class KindResult:
    """One kind of pairs."""

    dense: DenseScores = field(default_factory=DenseScores)
    ours: MatchScores = field(default_factory=MatchScores)
    sift: MatchScores = field(default_factory=MatchScores)
    example: tuple[SyntheticPair, RawMatches, DenseEstimate] | None = (
        None  # the first pair, its matches and forward estimate
    )


@dataclass
class HomographyResult:
    """All kinds, and what unrelated photographs are said to share."""

    kinds: dict[str, KindResult]
    unrelated_confident: list[float]  # share of confident pixels of each pair of unrelated photographs
    unrelated_matches: list[int]  # matches of such a pair, ours
    unrelated_sift: list[int]


def pairs_of(photos: PhotoSource, kind: str, settings: HomographySettings) -> Iterator[SyntheticPair]:
    """The fixed pairs of a kind: photographs in the same order for every kind."""
    warp, light = KINDS[kind]
    return fixed_pairs(photos, settings.count, settings.seed, _pair_settings(settings.size, warp, light))


def unrelated_pairs(photos: PhotoSource, settings: HomographySettings) -> Iterator[SyntheticPair]:
    """Views of two different photographs."""
    chosen = _pair_settings(settings.size, _VIEW, {"strength": 0}, unrelated=1.0)
    for number in range(settings.count):
        yield make_pair(photos, None, chosen, np.random.default_rng([settings.seed, 1, number]))


def evaluate_homographies(
    photos: PhotoSource,
    matcher: Matcher,
    settings: HomographySettings,
    progress: Callable[[str, Any], None] | None = None,
) -> HomographyResult:
    """Judge a matcher on all kinds; `progress(kind, result)` is called after each pair."""
    result = HomographyResult({}, [], [], [])
    for kind in settings.kinds:
        found = result.kinds[kind] = KindResult()
        for pair in pairs_of(photos, kind, settings):
            score_pair(pair, matcher, found)
            if progress:
                progress(kind, found)
    if len(photos) > 1:
        _score_unrelated(photos, matcher, settings, result, progress)
    return result


def evaluate_sets(
    sets: Mapping[str, Sequence[PlanePair]],
    matcher: Matcher,
    each: bool = False,
    progress: Callable[[str], None] | None = None,
) -> HomographyResult:
    """Judge a matcher on all pairs, in pixels of images whose smaller side is `dense.min_side`; a kind is a set, or each pair."""
    result = HomographyResult({}, [], [], [])
    for name, pairs in sets.items():
        for files in pairs:
            pair = load_pair(files.reference, files.query, files.homography, matcher.settings.dense.min_side)
            score_pair(
                pair, matcher, result.kinds.setdefault(f"{name} 1-{files.number}" if each else name, KindResult())
            )
            if progress:
                progress(name)
    return result


def score_pair(pair: SyntheticPair, matcher: Matcher, found: KindResult) -> None:
    """Match a pair and add everything about it; the first one becomes the kind's example."""
    result = match_images(pair.reference, pair.query, matcher=matcher)
    score_flow(pair, result.forward, result.backward, found.dense, matcher.settings.dense)
    score_matches(pair, result.matches, found.ours)
    score_matches(pair, RawMatches(*sift_matches(pair.reference, pair.query)), found.sift)
    found.example = found.example or (pair, result.matches, result.forward)


def score_flow(
    pair: SyntheticPair, forward: DenseEstimate, backward: DenseEstimate, scores: DenseScores, settings: DenseSettings
) -> None:
    """Add the errors of an estimate at all pixels that both images show."""
    height, width = pair.query.shape[:2]
    seen = fitted_size((width, height), settings.min_side, settings.max_side)[0] / width
    scores.add(forward, backward, *_truth(pair), query_seen=seen)


def score_matches(pair: SyntheticPair, matches: RawMatches, scores: MatchScores) -> None:
    """Add the matches of a pair whose images nothing but their borders hide."""
    scores.counts.append(len(matches))
    add_flow_truth(scores, matches, pair.flow, None, pair.query.shape[1::-1])
    scores.homography_errors.append(homography_error(matches, *_truth(pair)))


def _truth(pair: SyntheticPair) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of the reference that both images show, and where: (N, 2) twice."""
    y, x = np.nonzero(pair.visible)
    points = np.stack([x, y], -1).astype(np.float64)
    return points, points + pair.flow[y, x]


def _score_unrelated(
    photos: PhotoSource,
    matcher: Matcher,
    settings: HomographySettings,
    result: HomographyResult,
    progress: Callable[[str, Any], None] | None,
) -> None:
    for pair in unrelated_pairs(photos, settings):
        codes = [matcher.encode(image) for image in (pair.reference, pair.query)]
        forward, backward = matcher.estimator.estimate_both(*codes)
        if forward.log_var is not None:
            confident = forward.valid & (forward.confidence > CONFIDENT)
            result.unrelated_confident.append(float(confident.mean()))
        result.unrelated_matches.append(len(select_matches(forward, backward, settings.select)))
        result.unrelated_sift.append(len(RawMatches(*sift_matches(pair.reference, pair.query))))
        if progress:
            progress("unrelated", result)


def _pair_settings(
    size: tuple[int, int], warp: WarpSettings, light: dict[str, float], unrelated: float = 0.0
) -> SyntheticPairSettings:
    photometric = PhotometricSettings(**{**_NOTHING, **light})
    return SyntheticPairSettings(
        size=size, objects=0, perturbations=False, unrelated=unrelated, flip=0, mask="none", warp=warp,
        photometric=photometric,
    )  # fmt: skip
