"""How a cloud is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pdc_sfm.device import AUTO, Precision
from pdc_sfm.settings import require

# Pixels: around every picture of the sheet of partners, half a patch, thrice as large there; and the longest side of the
# sheet that OpenCV samples from.
BORDER, LARGEST_SHEET = 10, 32766


@dataclass(frozen=True)
class DensifySettings:
    """How depth is found, when it is believed, and with what."""

    max_side: int = 1024  # pixels: longer sides of images are shrunk to this
    partners: int = 8  # other images that the depth of an image is found with
    seen: int = 2  # images that must agree on a point, its own among them
    probability: float = 0.8  # that a depth is right, within 2 %, from which it is believed: fewer are wrong with more
    speckle: int = 100  # pixels: patches of depth that are smaller are dropped
    weights: str | None = None  # of the matching network; null: the built-in model
    device: str = AUTO  # of the network; the rest runs on the processor
    precision: Precision = "float32"  # of the network
    memory: str = "1GB"  # for codes of images
    seed: int = 0  # of the planes that are tried at random

    def __post_init__(self) -> None:
        require(64 <= self.max_side <= 8192, f"max_side={self.max_side} must be between 64 and 8192 pixels")
        require(1 <= self.partners <= 32, f"partners={self.partners} must be between 1 and 32")
        sheet = sheet_columns(self.partners) * (self.max_side + 2 * BORDER)
        together = f"max_side={self.max_side} with partners={self.partners}"
        require(sheet <= LARGEST_SHEET, f"{together} is more than can be compared at once: take fewer of one")
        require(2 <= self.seen <= self.partners + 1, f"seen={self.seen} must be between 2 and partners + 1")
        require(0 <= self.probability < 1, f"probability={self.probability} must lie between 0 and 1")
        require(self.speckle >= 0, f"speckle={self.speckle} must not be negative")
        require(self.seed >= 0, f"seed={self.seed} must not be negative")


def sheet_columns(count: int) -> int:
    """Pictures of the sheet side by side; it has no more rows than that."""
    return math.ceil(math.sqrt(count))
