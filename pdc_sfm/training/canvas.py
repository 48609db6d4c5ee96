"""Parts of images on an empty canvas, as a search shows turned and shrunk views: its borders are no features."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from pdc_sfm.pixels import ImageShape
from pdc_sfm.training.sources import Sample, Source

EMPTY = (124, 116, 104)  # the network's mean color, its zero
SMALLEST = 0.45  # of the sides of an image: the part that is left


@dataclass(frozen=True)
class CanvasSource:
    """The samples of a source, a share of whose images lie on a canvas."""

    source: Source
    share: float
    seed: int

    def sample(self, index: int, size: ImageShape) -> Sample:
        """Sample number `index`; sparse correspondences are left as they are."""
        sample = self.source.sample(index, size)
        if sample.points is not None:
            return sample
        rng = np.random.default_rng([self.seed, index, 4])
        for name in ("reference", "query"):
            if rng.random() < self.share:
                sample = laid_on_canvas(sample, name, random_part(size, rng))
        return sample


def random_part(size: ImageShape, rng: np.random.Generator) -> np.ndarray:
    """(H, W) bool: a turned rectangle somewhere in an image."""
    height, width = size
    sides = (float(side * rng.uniform(SMALLEST, 1.0)) for side in (width, height))
    center = (float(width * rng.uniform(0.4, 0.6)), float(height * rng.uniform(0.4, 0.6)))
    corners = cv2.boxPoints((center, tuple(sides), float(rng.uniform(0, 360))))
    part = np.zeros(size, np.uint8)
    cv2.fillConvexPoly(part, np.rint(corners).astype(np.int32), 1)
    return part > 0


def laid_on_canvas(sample: Sample, name: str, part: np.ndarray) -> Sample:
    """A sample of one of whose images only a part (H, W) is left: the rest has no counterpart."""
    image = getattr(sample, name).copy()
    image[~part] = EMPTY
    left = part if name == "reference" else _lands_on(part, sample.flow)
    return replace(sample, **{name: image}, valid=sample.valid & left, hidden=sample.hidden | ~left)


def _lands_on(part: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """(H, W) bool: pixels whose counterpart lies on a part of the query."""
    y, x = np.indices(flow.shape[:2], np.float32)
    known = np.nan_to_num(flow, nan=-1e6).astype(np.float32)
    return cv2.remap(part.astype(np.uint8), x + known[..., 0], y + known[..., 1], cv2.INTER_NEAREST, borderValue=0) > 0
