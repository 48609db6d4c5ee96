"""From dense estimates to matches: selects cells, and computes their positions in both original images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size
from pdc_sfm.settings import require

PAPER_SIDE = 600  # distances in settings are pixels of an image whose smaller side is this


@dataclass(frozen=True)
class SelectSettings:
    """Which matches are kept. The paper's for localization: P_1 > 0.1, both directions concatenated (preset `paper_aachen`).

    Here, by default, a match must also agree with the other direction, which is estimated anyway: on views of
    fountain-P11 next but one that drops 7 % of the matches and more than half of the wrong ones.
    """

    # matches are ranked and selected by the probability of being right, or by the cyclic error (there and back)
    confidence: Literal["probability", "cyclic"] = "probability"
    # the error below which a match is right, R of P_R, pixels of the network's input; the built-in model's confidence,
    # and that of any weights with a confidence head, is about 1 pixel and nothing else
    radius: float = 1.0
    threshold: float = 0.1  # keep matches whose probability of being right is above this
    # mutual: matches that agree in both directions; both: the two concatenated, as in the paper; forward: first to second
    # image, twice as fast
    directions: Literal["both", "mutual", "forward"] = "mutual"
    cyclic_distance: float = 3.0  # for mutual and cyclic: largest cyclic error, pixels at a smaller side of 600
    max_matches: int | None = None  # keep at most so many per pair, the most confident of each region; null: all
    stride: int = 4  # one match per square of so many pixels of the network's input: a quarter of its resolution

    def __post_init__(self) -> None:
        require(self.radius > 0, f"radius={self.radius} must be positive")
        require(0 <= self.threshold < 1, f"threshold={self.threshold} must be a probability, from 0 to below 1")
        require(self.cyclic_distance > 0, f"cyclic_distance={self.cyclic_distance} must be positive")
        require(self.max_matches is None or self.max_matches >= 1, f"max_matches={self.max_matches} must be at least 1")
        require(self.stride >= 1, f"stride={self.stride} must be at least 1")

    @property
    def needs_both(self) -> bool:
        """Whether both directions of a pair must be estimated."""
        return self.directions != "forward" or self.confidence == "cyclic"

    @property
    def needs_cycle(self) -> bool:
        """Whether they must agree."""
        return self.directions == "mutual" or self.confidence == "cyclic"


def scaled_distance(distance: float, image_size: Size) -> float:
    """A distance of the settings, given at a smaller side of 600 pixels, in pixels of this image."""
    return distance * min(image_size) / PAPER_SIDE


def select_matches(
    forward: DenseEstimate, backward: DenseEstimate | None = None, settings: SelectSettings | None = None
) -> RawMatches:
    """Matches of a pair (image0, image1) from its estimates: image0 as reference, and image1 as reference."""
    settings = settings or SelectSettings()
    if settings.needs_both and backward is None:
        raise ValueError(f"directions={settings.directions}, confidence={settings.confidence} need both estimates")
    from pdc_sfm.dense.field import field_from
    from pdc_sfm.matches import kept

    there, back = field_from(forward), None if backward is None else field_from(backward)
    packed = [kept.pack(there, back, settings)]
    if back is not None and settings.directions != "forward":
        packed.append(kept.pack(back, there, settings))
    return collect([maps[0].numpy() for maps in packed], (forward.reference_size, forward.query_size), settings)


def collect(packed: Sequence[np.ndarray], sizes: tuple[Size, Size], settings: SelectSettings) -> RawMatches:
    """Matches of a pair of images of these sizes from what `kept.pack` decided, forward and, if wanted, backward."""
    from pdc_sfm.matches.kept import unpack

    matches = unpack(packed[0], sizes[0])
    if len(packed) > 1:
        matches = concatenate(matches, unpack(packed[1], sizes[1]).swapped())
    return matches if settings.max_matches is None else subsample_spatially(matches, settings.max_matches, sizes[0])


def concatenate(one: RawMatches, other: RawMatches) -> RawMatches:
    """All matches of both."""
    arrays = (np.concatenate((getattr(one, n), getattr(other, n))) for n in ("keypoints0", "keypoints1", "scores"))
    return RawMatches(*arrays)


def subsample_spatially(matches: RawMatches, count: int, image_size: Size) -> RawMatches:
    """At most `count` matches: the best of each square of image0, then each one's second best, and so on."""
    if len(matches) <= count:
        return matches
    side = max(1.0, math.sqrt(image_size[0] * image_size[1] / count))
    columns, rows = np.floor((matches.keypoints0 + 0.5) / side).astype(np.int64).T
    square = rows * (int(image_size[0] / side) + 1) + columns
    order = np.lexsort((-matches.scores, square))
    first_of_square = np.r_[True, np.diff(square[order]) != 0]
    start = np.maximum.accumulate(np.where(first_of_square, np.arange(len(order)), 0))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - start
    best = np.lexsort((-matches.scores, rank))[:count]
    return matches.select(np.sort(best))
