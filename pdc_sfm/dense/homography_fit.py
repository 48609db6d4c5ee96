"""The homography that most confident matches of a first pass agree on (Sec. 3.7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.views import jacobian
from pdc_sfm.pixels import rescale_matrix, transform

MOST_POINTS = 5000  # the share of inliers is then known to .7 % (binomial), a mean place to a hundredth of a pixel
# Independent matches would need COLMAP's 15 (min_num_inliers); neighboring cells move together: these are a patch of 25x25 px.
FEWEST_INLIERS = 40
LARGEST_ZOOM = 10.0  # and shrinking, as dense.scales allows; beyond it a homography of real views is a mistake
LARGEST_STRETCH = 10.0  # of one direction against the other: a plane that both see is tilted by less than 84 degrees
TRIES = (
    2000  # OpenCV's default: four inliers are drawn with a probability of .999 where a quarter of the matches are right
)


@dataclass(frozen=True)
class Fit:
    """A homography between the original images' pixel indices, and how well matches agree on it."""

    query_from_reference: np.ndarray  # (3, 3)
    matches: int  # confident matches it was fitted to
    share: float  # of them within the threshold

    @property
    def inliers(self) -> float:
        return self.matches * self.share


def fit_homography(
    estimate: DenseEstimate,
    reference_seen: tuple[float, float],
    query_seen: tuple[float, float],
    *,
    threshold: float = 0.1,
    min_matches: int = 200,
    ransac_threshold: float = 1.0,
) -> Fit | None:
    """RANSAC on the matches with confidence above the threshold, in pixels the network saw; None if nothing sound is found.

    `reference_seen` and `query_seen` are the sizes (width, height) at which the network saw the whole images.
    """
    chosen = estimate.valid & (estimate.confidence > threshold)
    count = int(chosen.sum())
    if count < max(min_matches, 4):
        return None
    every = slice(None, None, -(-count // MOST_POINTS))
    to_reference = rescale_matrix(estimate.reference_size, reference_seen)
    to_query = rescale_matrix(estimate.query_size, query_seen)
    reference = transform(estimate.reference_points[chosen][every], to_reference)
    query = transform(estimate.query_points[chosen][every], to_query)
    found = fit_points(reference, query, min(FEWEST_INLIERS, min_matches), ransac_threshold)
    if found is None:
        return None
    homography, share = found
    return Fit(np.linalg.inv(to_query) @ homography @ to_reference, count, share)


def fit_points(
    reference: np.ndarray, query: np.ndarray, fewest: int, threshold: float
) -> tuple[np.ndarray, float] | None:
    """RANSAC on points (N, 2) of two images: a sound homography with so many inliers, and their share; else None."""
    import cv2

    if len(reference) < max(fewest, 4):
        return None
    homography, mask = cv2.findHomography(reference, query, cv2.RANSAC, threshold, maxIters=TRIES, confidence=0.999)
    if homography is None or mask.sum() < fewest:
        return None
    inliers = mask.ravel() > 0
    homography = in_front(homography, reference[inliers])
    return (homography, float(inliers.mean())) if is_sound(homography, reference[inliers]) else None


def in_front(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The homography with the sign that puts the points, not the origin, in front of the camera."""
    return homography if np.median(_depth(homography, points)) > 0 else -homography


def is_sound(homography: np.ndarray, points: np.ndarray) -> bool:
    """Whether a homography could come from two views, at the points (N, 2) it was fitted to.

    None of them behind the horizon, none mirrored (negative determinant), no extreme zoom or stretch.
    """
    if not np.isfinite(homography).all():
        return False
    if _depth(homography, points).min() <= 0:
        return False
    derivative = jacobian(homography, points)
    if np.linalg.det(derivative).min() <= 0:
        return False
    zooms = np.linalg.svd(derivative, compute_uv=False)  # (N, 2), larger first
    typical = np.median(np.sqrt(zooms.prod(1)))
    stretch = np.median(zooms[:, 0] / zooms[:, 1])
    return bool(1 / LARGEST_ZOOM < typical < LARGEST_ZOOM and stretch < LARGEST_STRETCH)


def _depth(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    return points @ homography[2, :2] + homography[2, 2]
