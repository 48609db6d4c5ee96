"""Dense flow as the matcher of sparse keypoints (Sec. 3.7, "Using our dense flow for sparse matching")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pdc_sfm.dense.cyclic import cyclic_error_at
from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.matches.one_to_one import one_to_one
from pdc_sfm.matches.select import scaled_distance
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.settings import require


@dataclass(frozen=True)
class SnapSettings:
    """The paper's rule; d = 4 at a smaller side of 600 pixels, P_1 > 0.1, both directions concatenated."""

    distance: float = 4.0  # d: largest distance of a predicted point from its keypoint, pixels at a smaller side of 600
    radius: float = 1.0  # R of P_R, pixels of the network's input; 1 for weights with a confidence head
    threshold: float = 0.1  # keep matches whose probability of being right is above this
    # both: the two concatenated; mutual: matches that agree in both directions; forward: first to second image
    directions: Literal["both", "mutual", "forward"] = "both"
    # largest cyclic error, pixels at a smaller side of 600; null: no such check
    cyclic_distance: float | None = None

    def __post_init__(self) -> None:
        require(self.distance > 0, f"distance={self.distance} must be positive")
        require(self.radius > 0, f"radius={self.radius} must be positive")
        require(0 <= self.threshold < 1, f"threshold={self.threshold} must be a probability, from 0 to below 1")
        require(
            self.cyclic_distance is None or self.cyclic_distance > 0,
            f"cyclic_distance={self.cyclic_distance} must be positive",
        )


@dataclass(frozen=True)
class SnappedMatches:
    """Matches between the keypoints of two images, one to one."""

    indices0: np.ndarray  # (K,) int32
    indices1: np.ndarray  # (K,) int32
    scores: np.ndarray  # (K,) float32

    def __len__(self) -> int:
        return len(self.scores)

    def raw(self, keypoints0: np.ndarray, keypoints1: np.ndarray) -> RawMatches:
        """The same matches by their coordinates."""
        return RawMatches(keypoints0[self.indices0], keypoints1[self.indices1], self.scores)

    def matches0(self, count0: int) -> tuple[np.ndarray, np.ndarray]:
        """As hloc stores them: for each keypoint of image0 its partner or -1 (int32), and the score (float32)."""
        partners, scores = np.full(count0, -1, np.int32), np.zeros(count0, np.float32)
        partners[self.indices0], scores[self.indices0] = self.indices1, self.scores
        return partners, scores


def snap_matches(
    keypoints0: np.ndarray,  # (N0, 2) pixel indices of the original images
    keypoints1: np.ndarray,  # (N1, 2)
    forward: DenseEstimate,
    backward: DenseEstimate | None = None,
    settings: SnapSettings | None = None,
) -> SnappedMatches:
    """Match the keypoints of image0 and image1 by the estimates with image0, and with image1, as reference."""
    settings = settings or SnapSettings()
    if backward is None and (settings.directions != "forward" or settings.cyclic_distance is not None):
        raise ValueError(f"directions={settings.directions} and cyclic_distance need both estimates")
    pairs = _directed(keypoints0, keypoints1, forward, backward, settings)
    if backward is not None and settings.directions != "forward":
        back = _directed(keypoints1, keypoints0, backward, forward, settings)
        pairs = np.concatenate((pairs, back[:, [1, 0, 2, 3]]))
        pairs = pairs[np.argsort(-pairs[:, 3], kind="stable")]
        _, best, counts = np.unique(pairs[:, :2], axis=0, return_index=True, return_counts=True)
        pairs = pairs[best[counts == 2] if settings.directions == "mutual" else best]
    indices = pairs[:, :2].astype(np.int32)
    kept = one_to_one(indices[:, 0], indices[:, 1], pairs[:, 3])
    return SnappedMatches(indices[kept, 0], indices[kept, 1], pairs[kept, 2].astype(np.float32))


def _directed(
    reference: np.ndarray, query: np.ndarray, forward: DenseEstimate, backward: DenseEstimate | None, s: SnapSettings
) -> np.ndarray:
    """(K, 4) rows: keypoint of the reference, keypoint of the query, confidence, rank among rivals.

    The rank is the confidence times the closeness: confidence saturates, so alone it would choose by chance between keypoints
    that claim the same partner.
    """
    from scipy.spatial import cKDTree

    if len(reference) == 0 or len(query) == 0:
        return np.zeros((0, 4))
    at = forward.sample(reference)
    scores = at.confidence_within(s.radius)
    predicted = reference + at.flow
    sure = np.flatnonzero(at.valid & (scores > s.threshold))
    limit = scaled_distance(s.distance, forward.query_size)
    distance, nearest = cKDTree(query).query(predicted[sure], distance_upper_bound=limit)
    near = distance < limit
    sure, nearest, distance = sure[near], nearest[near], distance[near]
    if s.cyclic_distance is not None:
        assert backward is not None  # `snap_matches` wants it
        error = cyclic_error_at(reference[sure], predicted[sure], at.valid[sure], backward)
        close = error < scaled_distance(s.cyclic_distance, forward.reference_size)
        sure, nearest, distance = sure[close], nearest[close], distance[close]
    return np.stack((sure, nearest, scores[sure], scores[sure] * (1 - distance / limit)), 1).astype(np.float64)
