"""A matcher that says of any two images that one is the other moved: exact where that is so, wrong by a known amount else."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import grid_points, inside


class MovedMatcher:
    """`shift` in pixels of the images it is given, from the darker corner pixel's image to the brighter one's."""

    def __init__(self, shift=(0.0, 0.0)):
        self.shift = np.array(shift, np.float32)
        self.estimator = SimpleNamespace(estimate=self.estimate, estimate_both=self.estimate_both)

    def encode(self, image, name="image"):
        return image

    def estimate(self, reference, query) -> DenseEstimate:
        sign = 1 if reference[0, 0, 0] < query[0, 0, 0] else -1
        size, other = reference.shape[1::-1], query.shape[1::-1]
        flow = np.broadcast_to(sign * self.shift, (*size[::-1], 2)).astype(np.float32)
        log_var = np.broadcast_to(np.float32([0, 8]), flow.shape).copy()
        logits = np.broadcast_to(np.float32([6, 0]), flow.shape).copy()
        valid = inside(grid_points(size, size) + flow, other)
        return DenseEstimate(flow, log_var, logits, valid, size, other, stride=1)

    def estimate_both(self, image0, image1):
        return self.estimate(image0, image1), self.estimate(image1, image0)

    def match(self, image0, image1) -> RawMatches:
        estimate = self.estimate(image0, image1)
        points = estimate.reference_points[::8, ::8][estimate.valid[::8, ::8]]
        return RawMatches(points, points + estimate.flow[0, 0], np.ones(len(points)))


def picture(size, corner: int) -> np.ndarray:
    """(H, W, 3) noise of (width, height) whose corner pixel is `corner`."""
    image = np.random.default_rng(corner).integers(0, 255, (size[1], size[0], 3), np.uint8)
    image[:8, :8] = corner
    return image
