"""One vector for an image: its coarsest features, summed by the visual word each is nearest to.

As VLAD (Jegou et al. 2010), with soft assignment, and sums of the features themselves where VLAD has their differences from the
word: on gardenspoint by night and a kitchen these found the place more often. The words are those of the database, so that any
network will do, and nothing has to be shipped.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

WORDS = 64  # as in NetVLAD (Arandjelovic et al. 2016)
AXES = 16  # of the features, those along which they vary most: 64 x 16 numbers in half precision are 2 kB an image
SHARPNESS = 20.0  # of the assignment: a word whose cosine is lower by a twentieth gets a share lower by e
SAMPLE = 30_000  # features that words are learned from: some hundred a word
ROUNDS = 10  # of k-means, which need not converge: words only have to cover the features


@dataclass(frozen=True)
class Vocabulary:
    """Words of the local features of a database."""

    mean: np.ndarray  # (C,) of unit features
    words: np.ndarray  # (K, C) unit
    axes: np.ndarray  # (C, A)

    @staticmethod
    def learn(maps: np.ndarray, seed: int = 0) -> Vocabulary:
        """Of the coarsest features (N, C, H, W) of some images."""
        features = _local(maps).reshape(-1, maps.shape[1])
        features = features[:: max(1, len(features) // SAMPLE)]
        mean = features.mean(0)
        features = _unit(features - mean)
        words = _kmeans(features, min(WORDS, len(features)), np.random.default_rng(seed))
        variances, axes = np.linalg.eigh(features.T @ features / len(features))
        count = min(AXES, maps.shape[1])
        # halfway to equal variances: what varies most is most often light and least often a place
        weights = np.maximum(variances[::-1][:count], 1e-6) ** -0.25
        return Vocabulary(mean, words, (axes[:, ::-1][:, :count] * weights).astype(np.float32))

    @property
    def size(self) -> int:
        """Numbers of a descriptor."""
        return len(self.words) * self.axes.shape[1]

    def describe(self, maps: np.ndarray) -> np.ndarray:
        """Descriptors (N, D), unit, of the coarsest features (N, C, H, W) of some images."""
        return self.normalize(self.sums(maps))

    def sums(self, maps: np.ndarray) -> np.ndarray:
        """(N, K, A): features along the axes, summed by word. Of parts of an image they add up to those of the image."""
        features = _unit(_local(maps) - self.mean)  # (N, H * W, C)
        likeness = SHARPNESS * (features @ self.words.T)
        shares = np.exp(likeness - likeness.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return shares.transpose(0, 2, 1) @ (features @ self.axes)

    @staticmethod
    def normalize(sums: np.ndarray) -> np.ndarray:
        """(N, K, A) -> (N, D) unit."""
        # the root of the length: what fills an image is not all of it
        sums = sums / np.sqrt(np.maximum(np.linalg.norm(sums, axis=-1, keepdims=True), 1e-6))
        return _unit(sums.reshape(len(sums), -1))

    def digest(self) -> str:
        """A fingerprint: descriptors by other words cannot be compared."""
        parts = (np.ascontiguousarray(part, np.float32).tobytes() for part in (self.mean, self.words, self.axes))
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _local(maps: np.ndarray) -> np.ndarray:
    """(N, C, H, W) -> unit features of all cells, (N, H * W, C) float32."""
    return _unit(maps.reshape(*maps.shape[:2], -1).transpose(0, 2, 1).astype(np.float32))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)


def _kmeans(features: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Directions (K, C) about which unit features (N, C) gather."""
    words = features[random.choice(len(features), count, replace=False)]
    for _ in range(ROUNDS):
        nearest = (features @ words.T).argmax(1)
        sums = np.zeros_like(words)
        np.add.at(sums, nearest, features)
        empty = np.bincount(nearest, minlength=count) == 0
        sums[empty] = features[random.choice(len(features), int(empty.sum()))]
        words = _unit(sums)
    return words
