"""SIFT, the row beside ours."""

from __future__ import annotations

import numpy as np

from pdc_sfm.matches.types import RawMatches
from pdc_sfm.sift import sift_matches


def match_sift(image0: np.ndarray, image1: np.ndarray) -> RawMatches:
    """Matches of two RGB images, (H, W, 3) uint8; the score falls with the ratio to the second best."""
    return RawMatches(*sift_matches(image0, image1))
