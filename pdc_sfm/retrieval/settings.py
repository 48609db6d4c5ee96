"""How database images are ranked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pdc_sfm.dense.strategies import find_strategy, strategy_names
from pdc_sfm.device import Precision, require_device
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.pixels import MIN_SIDE
from pdc_sfm.settings import require
from pdc_sfm.workers import Engine, RaySettings


@dataclass(frozen=True)
class RetrievalSettings:
    """What is counted and for which images. `device` and `memory` to `ray` change the speed only."""

    # cascade: a descriptor of each image, then pooled features, the 256-pixel branch, the full network, each for fewer images;
    # exhaustive: the full network for all, as in the paper
    mode: Literal["cascade", "exhaustive"] = "cascade"
    min_side: int = 400  # the full network sees images with this smaller side
    max_side: int | None = 1024  # never let the longer side exceed this; null: however long it is
    # how the full network sees a pair, as dense.method: auto leaves unrelated images early and finds turned ones; direct is the
    # paper's
    method: Annotated[str, strategy_names] = "auto"
    radius: float = 1.0  # R of P_R, pixels; 1 for weights with a confidence head
    threshold: float = 0.1  # a match is confident if its probability of being right is above this
    shortlist: int = (
        100  # cascade: images of each query, by one descriptor an image, whose pooled features are compared
    )
    candidates: int = 30  # cascade: of those, by pooled features, the ones that the 256-pixel branch sees
    low_radius: float = 4.0  # R of that branch, in its pixels
    # cascade: of those the best, which the full network ranks; the others follow as the 256-pixel branch has them. 0: none, if
    # all that is retrieved is matched afterwards anyway
    best: int = 5
    min_matches: int = 1  # images with fewer confident matches are not retrieved
    weights: str | None = None  # a weights file; null: the built-in model
    device: str = "auto"  # cpu, cuda, cuda:1 ..., or auto: a GPU where there is one
    precision: Precision = "float32"  # of convolutions; the others are faster on a GPU, and change numbers a little
    memory: str = "4GB"  # for codes of images that later pairs use again
    readers: int = 2  # threads that read images ahead
    batch: int = 1  # pairs of equal sizes at a time through the full network
    coarse_batch: int = 32  # pairs at a time through the 256-pixel branch
    engine: Engine = "local"  # local: this process; ray: several workers, on this machine or a cluster (docs/scale.md)
    ray: RaySettings = field(default_factory=RaySettings)

    def __post_init__(self) -> None:
        require(self.min_side >= MIN_SIDE, f"min_side={self.min_side} must be at least {MIN_SIDE} pixels")
        long = self.max_side is None or self.max_side >= self.min_side
        require(long, f"max_side={self.max_side} must be at least min_side={self.min_side}")
        find_strategy(self.method)  # says which there are
        SelectSettings(radius=self.radius, threshold=self.threshold)  # names what is out of range
        require_device(self.device, self.precision)
        require(self.shortlist >= 1, f"shortlist={self.shortlist} must be at least 1")
        require(self.candidates >= 1, f"candidates={self.candidates} must be at least 1")
        require(self.low_radius > 0, f"low_radius={self.low_radius} must be positive")
        require(self.best >= 0, f"best={self.best} must not be negative (0: none)")
        require(self.min_matches >= 1, f"min_matches={self.min_matches} must be at least 1")
        require(0 <= self.readers <= 64, f"readers={self.readers} must be between 0 and 64")
        require(self.batch >= 1 and self.coarse_batch >= 1, "batch and coarse_batch must be at least 1")
