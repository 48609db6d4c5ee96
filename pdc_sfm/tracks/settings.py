"""How raw matches become keypoints and tracks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdc_sfm.settings import require


@dataclass(frozen=True)
class TrackSettings:
    """How raw matches become keypoints and tracks."""

    # flow: keypoints propagated from image to image by the flow; hloc: matches rounded to cells, as hloc does
    rule: Literal["flow", "hloc"] = "flow"
    max_error: float = 2.0  # largest distance of a match from its keypoint, pixels
    cell_size: float = 2.0  # at most one keypoint per cell of so many pixels; 8 for maps of thousands of images
    # the best of each image, spread over it. More give no better poses (docs/scale.md), and cost as much more to triangulate
    # and to localize in; for a denser cloud 32768 (--config dense); null keeps all, and queries of fixed images unquantized
    max_keypoints: int | None = 4096
    # flow: weaker matches are not used for tracks of a map, which they would harm; localization queries use all
    min_score: float = 0.3

    def __post_init__(self) -> None:
        require(self.max_error > 0, f"max_error={self.max_error} must be positive")
        require(self.cell_size >= 0, f"cell_size={self.cell_size} must not be negative")
        require(0 <= self.min_score < 1, f"min_score={self.min_score} must be in [0, 1)")
        top = self.max_keypoints
        require(top is None or top >= 1, f"max_keypoints={top} must be at least 1, or null for all")
