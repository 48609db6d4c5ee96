"""How one pair is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pdc_sfm.dense.strategies import find_strategy, strategy_names
from pdc_sfm.pixels import MIN_SIDE
from pdc_sfm.settings import require


@dataclass(frozen=True)
class DenseSettings:
    """Resolution and strategy (Sec. 3.7)."""

    min_side: int | None = 480  # resize so that the smaller side has this length; null keeps the size
    max_side: int | None = 1024  # limit of the longer side; null: no limit
    # auto: unrelated pairs stop after the coarse levels, others get one pass, and those with few matches are searched
    # in rotated, tilted and zoomed views; direct: one pass; homography, multiscale: the paper's (H) and (MS), which warp the
    # query of every pair by a homography first; search: one pass for every pair, then the views, for unrelated images too
    method: Annotated[str, strategy_names] = "auto"
    subpixel: bool | None = None  # align the images around each match; null: unless the network is the published one
    rotations: int = 1  # also try the query rotated by multiples of 360/rotations degrees; 1: no rotations
    # multiscale: the scales tried; below 1 the reference shrinks
    scales: tuple[float, ...] = (0.5, 0.6, 0.88, 1.0, 1.33, 1.66, 2.0)
    # auto, search: other views only if a smaller share of the reference is confident after one pass; auto: nor if the coarse
    # levels expect more
    search_below: float = 0.1
    # auto, search: by windows of the images too, which shows zooms and small overlaps; false: by the whole images turned and
    # squeezed, quickly; null: false for queries, each of which has many images to be found by, true for maps
    windows: bool | None = None
    threshold: float = 0.1  # the homography is fitted to matches with confidence above this
    min_matches: int = 200  # no second pass with fewer of these matches
    ransac_threshold: float = 1.0  # pixels of the network's input

    def __post_init__(self) -> None:
        for name in ("min_side", "max_side"):
            side = getattr(self, name)
            require(side is None or side >= MIN_SIDE, f"{name}={side} must be at least {MIN_SIDE} pixels")
        require(1 <= self.rotations <= 36, f"rotations={self.rotations} must be between 1 (no search) and 36")
        turns = find_strategy(self.method).turns
        require(
            not turns or self.rotations == 1,
            f"method={self.method} turns the images itself: leave rotations out, or choose method=direct",
        )
        require(0 <= self.search_below <= 1, f"search_below={self.search_below} must be a share, 0 to 1")
        require(bool(self.scales), "scales must name at least one ratio")
        require(all(0.1 <= s <= 10 for s in self.scales), f"scales={self.scales} must lie between 0.1 and 10")
        require(0 < self.threshold < 1, f"threshold={self.threshold} must be a probability between 0 and 1")
        require(self.min_matches >= 4, f"min_matches={self.min_matches} must be at least 4")
        require(self.ransac_threshold > 0, f"ransac_threshold={self.ransac_threshold} must be positive")

    @property
    def needs_pixels(self) -> bool:
        """Whether a pair needs the images again after encoding."""
        return not find_strategy(self.method).is_one_pass or self.rotations > 1
