"""The matches of one image pair, as every later step receives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RawMatches:
    """Point matches of a pair, in pixel indices of the original images (see `pdc_sfm.pixels`)."""

    keypoints0: np.ndarray  # (N, 2) float32, x y in the first image
    keypoints1: np.ndarray  # (N, 2) float32, x y in the second image
    scores: np.ndarray  # (N,) float32, higher is more certain

    def __post_init__(self) -> None:
        for name in ("keypoints0", "keypoints1", "scores"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float32))
        shape = (len(self.scores), 2)
        if self.scores.ndim != 1 or self.keypoints0.shape != shape or self.keypoints1.shape != shape:
            raise ValueError(
                "matches need (N, 2), (N, 2) and (N,) arrays, not "
                f"{self.keypoints0.shape}, {self.keypoints1.shape} and {self.scores.shape}"
            )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def nbytes(self) -> int:
        return self.keypoints0.nbytes + self.keypoints1.nbytes + self.scores.nbytes

    def swapped(self) -> RawMatches:
        """The same matches seen from the second image."""
        return RawMatches(self.keypoints1, self.keypoints0, self.scores)

    def select(self, index: np.ndarray) -> RawMatches:
        """The matches of a mask or of an index array, in its order."""
        if index.dtype == bool:
            index = np.flatnonzero(index)  # taking whole rows is several times faster than masking them
        return RawMatches(*(np.take(a, index, 0) for a in (self.keypoints0, self.keypoints1, self.scores)))

    def above(self, score: float) -> RawMatches:
        """Those of at least this score."""
        return self.select(self.scores >= score) if score > 0 else self

    @staticmethod
    def empty() -> RawMatches:
        return RawMatches(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0))
