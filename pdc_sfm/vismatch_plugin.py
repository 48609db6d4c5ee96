"""PDC-Net+ as a matcher of vismatch (formerly image-matching-models), without changing vismatch.

    from pdc_sfm.vismatch_plugin import PDCNetMatcher

    matcher = PDCNetMatcher(device="cpu")
    result = matcher("a.jpg", "b.jpg")  # num_inliers, H, matched_kpts0, matched_kpts1, matched_confidences, ...

It takes what every matcher of vismatch takes, `device` and `max_num_keypoints`, and settings of ours by their words:
`PDCNetMatcher(settings=["dense.method=search"])`. Confidences are probabilities of being right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pdc_sfm.matcher import PairSettings, load_matcher
from pdc_sfm.settings import load_settings

Base: Any = torch.nn.Module
try:
    from vismatch import BaseMatcher

    Base = BaseMatcher
except ImportError:  # said where a matcher is made: this module can be imported without
    pass

__all__ = ["PDCNetMatcher"]


class PDCNetMatcher(Base):
    """Dense matches, the `max_num_keypoints` most confident of them. It does not detect or describe keypoints."""

    def __init__(
        self,
        device: str = "cpu",
        max_num_keypoints: int = 2048,
        *args: Any,
        weights: Path | str | None = None,
        settings: Sequence[str] = (),
        **kwargs: Any,
    ):
        if Base is torch.nn.Module:
            raise ImportError("PDCNetMatcher needs vismatch: pip install vismatch")
        super().__init__(device, **kwargs)
        self.max_num_keypoints = max_num_keypoints
        self.matcher = load_matcher(weights, load_settings(PairSettings, None, settings), str(device))

    def _forward(self, img0: torch.Tensor, img1: torch.Tensor) -> tuple[Any, ...]:
        """(3, H, W) images in [0, 1]: matched keypoints (N, 2) of both, four times nothing, confidences (N,)."""
        codes = [self.matcher.encode(_pixels(image), f"image{k}") for k, image in enumerate((img0, img1))]
        found = self.matcher.match(*codes)
        best = np.argsort(-found.scores, kind="stable")[: self.max_num_keypoints]
        keypoints0, keypoints1 = found.keypoints0[best], found.keypoints1[best]
        return keypoints0, keypoints1, None, None, None, None, found.scores[best]


def _pixels(image: torch.Tensor) -> np.ndarray:
    """(H, W, 3) uint8."""
    image = image[0] if image.ndim == 4 else image
    return (255 * image.clamp(0, 1) + 0.5).byte().permute(1, 2, 0).contiguous().cpu().numpy()
