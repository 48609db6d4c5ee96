"""A benchmark from any folder of photographs: pairs of views with exact ground truth, of kinds from easy to hard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.evaluation.dense_scores import CONFIDENT, DenseScores, match_errors
from pdc_sfm.evaluation.sift import match_sift
from pdc_sfm.images import fitted_size
from pdc_sfm.matcher import Matcher
from pdc_sfm.matches.select import SelectSettings, select_matches
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import inside, transform
from pdc_sfm.settings import require
from pdc_sfm.training.pairs import Pair, PairSettings, PhotoSource, fixed_pairs, make_pair
from pdc_sfm.training.photometric import PhotometricSettings
from pdc_sfm.training.warps import WarpSettings

SOUND = 3.0  # pixels; a homography from matches counts if it is this close on average over what both images show
MOST_POINTS = 5000  # more change nothing but the time RANSAC takes

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
_NOTHING = dict.fromkeys(("colour", "grey", "shading", "shadow", "night", "blur", "motion", "noise", "jpeg"), 0.0)

# kind -> how its views differ, and how light and camera do
KINDS: dict[str, tuple[WarpSettings, dict[str, float]]] = {
    "viewpoint": (_VIEW, {"strength": 0}),
    "zoom": (_ZOOM, {"strength": 0}),
    "blur": (_VIEW, {"strength": 1.5, "blur": 1, "motion": 0.3}),
    "light": (_VIEW, {"strength": 1.5, "colour": 1, "shading": 0.5, "shadow": 0.5}),
    "night": (_VIEW, {"strength": 1, "night": 0.7, "colour": 1}),
    "compression": (_VIEW, {"strength": 1.5, "jpeg": 1, "noise": 0.5}),
    "rotation": (_TURNED, {"strength": 0}),
    "strong zoom": (_STRONG, {"strength": 0}),
}


@dataclass(frozen=True)
class HomographySettings:
    """How many pairs of each kind, at which size, and how they are matched."""

    count: int = 10  # pairs of each kind, and of unrelated photographs
    kinds: tuple[str, ...] = tuple(KINDS)
    size: tuple[int, int] = (480, 640)  # (height, width)
    seed: int = 0
    dense: DenseSettings = field(default_factory=DenseSettings)
    select: SelectSettings = field(default_factory=SelectSettings)

    def __post_init__(self) -> None:
        require(self.count >= 1, f"count={self.count} must be at least 1")
        require(min(self.size) >= 64, f"size={self.size}: both sides at least 64")
        for kind in self.kinds:
            require(kind in KINDS, f"kinds={kind} is not possible: choose from {', '.join(KINDS)}")


@dataclass
class MatchScores:
    """Sparse matches of one kind of pairs, ours or SIFT's."""

    counts: list[int] = field(default_factory=list)
    within_1: list[float] = field(default_factory=list)
    within_5: list[float] = field(default_factory=list)
    homography_errors: list[float] = field(default_factory=list)

    def add(self, matches: RawMatches, pair: Pair) -> None:
        """Judge matches of reference and query by the pair's true flow."""
        true = matches.keypoints0 + _flow_at(pair.flow, matches.keypoints0)
        seen = inside(true, pair.query.shape[1::-1])  # in these pairs nothing is hidden but what is out of view
        errors = match_errors(matches.keypoints1, true, seen)
        self.counts.append(len(matches))
        self.within_1.append(float(np.mean(errors <= 1)) if len(errors) else 0.0)
        self.within_5.append(float(np.mean(errors <= 5)) if len(errors) else 0.0)
        self.homography_errors.append(homography_error(matches, pair))

    def summary(self) -> dict[str, float]:
        return {
            "matches": float(np.mean(self.counts)),
            "within_1": float(np.mean(self.within_1)),
            "within_5": float(np.mean(self.within_5)),
            "homography_found": float(np.mean(np.array(self.homography_errors) <= SOUND)),
        }


@dataclass
class KindResult:
    """One kind of pairs."""

    dense: DenseScores = field(default_factory=DenseScores)
    ours: MatchScores = field(default_factory=MatchScores)
    sift: MatchScores = field(default_factory=MatchScores)
    example: tuple[Pair, RawMatches, DenseEstimate] | None = None  # the first pair, its matches and forward estimate


@dataclass
class HomographyResult:
    """All kinds, and what unrelated photographs are said to share."""

    kinds: dict[str, KindResult]
    unrelated_confident: list[float]  # share of confident pixels of each pair of unrelated photographs
    unrelated_matches: list[int]  # matches of such a pair, ours
    unrelated_sift: list[int]


def pairs_of(photos: PhotoSource, kind: str, settings: HomographySettings) -> Iterator[Pair]:
    """The fixed pairs of a kind: photographs in the same order for every kind."""
    warp, light = KINDS[kind]
    return fixed_pairs(photos, settings.count, settings.seed, _pair_settings(settings.size, warp, light))


def unrelated_pairs(photos: PhotoSource, settings: HomographySettings) -> Iterator[Pair]:
    """Views of two different photographs."""
    chosen = _pair_settings(settings.size, _VIEW, {"strength": 0}, unrelated=1.0)
    for number in range(settings.count):
        yield make_pair(photos, None, chosen, np.random.default_rng([settings.seed, 1, number]))


def evaluate_homographies(
    photos: PhotoSource, matcher: Matcher, settings: HomographySettings, progress=None
) -> HomographyResult:
    """Judge a matcher on all kinds; `progress(kind, result)` is called after each pair."""
    result = HomographyResult({}, [], [], [])
    for kind in settings.kinds:
        found = result.kinds[kind] = KindResult()
        for pair in pairs_of(photos, kind, settings):
            codes = [matcher.encode(image) for image in (pair.reference, pair.query)]
            forward, backward = matcher.estimator.estimate_both(*codes)
            matches = select_matches(forward, backward, settings.select)
            judge_pair(pair, forward, backward, found.dense, settings)
            found.ours.add(matches, pair)
            found.sift.add(match_sift(pair.reference, pair.query), pair)
            if found.example is None:
                found.example = (pair, matches, forward)
            if progress:
                progress(kind, found)
    if len(photos) > 1:
        _judge_unrelated(photos, matcher, settings, result, progress)
    return result


def judge_pair(
    pair: Pair, forward: DenseEstimate, backward: DenseEstimate, scores: DenseScores, settings: HomographySettings
) -> None:
    """Add the errors of an estimate at all pixels that both images show."""
    y, x = np.nonzero(pair.visible)
    points = np.stack([x, y], -1).astype(np.float64)
    scores.add(forward, backward, points, points + pair.flow[y, x], query_seen=_network_scale(settings))


def _judge_unrelated(
    photos, matcher: Matcher, settings: HomographySettings, result: HomographyResult, progress
) -> None:
    for pair in unrelated_pairs(photos, settings):
        codes = [matcher.encode(image) for image in (pair.reference, pair.query)]
        forward, backward = matcher.estimator.estimate_both(*codes)
        if forward.log_var is not None:
            confident = forward.valid & (forward.confidence(1.0) > CONFIDENT)
            result.unrelated_confident.append(float(confident.mean()))
        result.unrelated_matches.append(len(select_matches(forward, backward, settings.select)))
        result.unrelated_sift.append(len(match_sift(pair.reference, pair.query)))
        if progress:
            progress("unrelated", result)


def homography_error(matches: RawMatches, pair: Pair) -> float:
    """Mean error, over what both images show, of the homography that RANSAC finds from matches; infinite if none."""
    import cv2

    if len(matches) < 4:
        return float("inf")
    every = slice(None, None, -(-len(matches) // MOST_POINTS))
    points0, points1 = matches.keypoints0[every], matches.keypoints1[every]
    homography, _ = cv2.findHomography(points0, points1, cv2.USAC_MAGSAC, 2.0, maxIters=5000)
    if homography is None:
        return float("inf")
    y, x = np.nonzero(pair.visible)
    points = np.stack([x, y], -1).astype(np.float64)
    error = np.linalg.norm(transform(points, homography / homography[2, 2]) - points - pair.flow[y, x], axis=-1)
    return float(error.mean()) if np.isfinite(error).all() else float("inf")


def _pair_settings(
    size: tuple[int, int], warp: WarpSettings, light: dict[str, float], unrelated: float = 0.0
) -> PairSettings:
    photometric = PhotometricSettings(**{**_NOTHING, **light})
    return PairSettings(
        size=size, objects=0, perturbations=False, unrelated=unrelated, flip=0, mask="none", warp=warp,
        photometric=photometric,
    )  # fmt: skip


def _network_scale(settings: HomographySettings) -> float:
    """Pixels of the network's input per pixel of the pairs."""
    height, width = settings.size
    return fitted_size((width, height), settings.dense.min_side, settings.dense.max_side)[0] / width


def _flow_at(flow: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The true flow (H, W, 2) at points (N, 2), bilinear."""
    from scipy.ndimage import map_coordinates

    # nearest: a cell's centre may lie up to half a pixel beyond the outermost ones
    at = points.T[::-1].astype(np.float64)
    return np.stack([map_coordinates(flow[..., c], at, order=1, mode="nearest") for c in (0, 1)], -1)
