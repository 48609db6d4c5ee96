"""An endless stream of batches of pairs. Item i depends on (seed, i) alone, so training resumes to the same stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pdc_sfm.errors import UserError
from pdc_sfm.training.pairs import Pair, PairSettings, PhotoSource, make_pair
from pdc_sfm.training.workers import in_order


@dataclass(frozen=True)
class Batch:
    """Pairs of one size, stacked."""

    reference: np.ndarray  # (B, H, W, 3) uint8
    query: np.ndarray  # (B, H, W, 3) uint8
    flow: np.ndarray  # (B, H, W, 2) float32
    mask: np.ndarray  # (B, H, W) bool
    visible: np.ndarray  # (B, H, W) bool
    unrelated: np.ndarray  # (B,) bool

    @classmethod
    def stack(cls, pairs: Sequence[Pair]) -> Batch:
        names = ("reference", "query", "flow", "mask", "visible", "unrelated")
        return cls(*(np.stack([getattr(pair, name) for pair in pairs]) for name in names))

    def tensors(self, device="cpu") -> dict:
        """For the network: images (B, 3, H, W) float32 in 0..1, flow (B, 2, H, W), the rest as it is."""
        import torch

        def planes(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(array).to(device).permute(0, 3, 1, 2).contiguous()

        images = {name: planes(getattr(self, name)).float().div_(255) for name in ("reference", "query")}
        truth = {name: torch.from_numpy(getattr(self, name)).to(device) for name in ("mask", "visible", "unrelated")}
        return {**images, "flow": planes(self.flow), **truth}


@dataclass(frozen=True)
class PairStream:
    """Batches from batch number `start` on: `for batch in stream`. Each iteration begins there anew."""

    photos: PhotoSource
    cutouts: Sequence[np.ndarray] | None
    settings: PairSettings
    seed: int
    batch_size: int
    workers: int = 0  # processes; 0 makes the batches in this one
    start: int = 0
    prefetch: int = 2  # batches waiting for each worker
    step: int = 1  # with several trainers, each takes every step-th batch

    def __post_init__(self) -> None:
        if len(self.photos) < 2 and (self.settings.unrelated > 0 or (self.settings.objects and not self.cutouts)):
            raise UserError("unrelated pairs and objects cut from photographs need at least two photographs: add some")

    def batch(self, number: int) -> Batch:
        """Batch `number`, whatever was drawn before."""
        settings = replace(self.settings, size=self.size(number), max_size=None)
        items = range(number * self.batch_size, (number + 1) * self.batch_size)
        return Batch.stack([self._pair(settings, i) for i in items])

    def pair(self, index: int) -> Pair:
        """Item `index` of the stream."""
        size = self.size(index // self.batch_size)
        return self._pair(replace(self.settings, size=size, max_size=None), index)

    def _pair(self, settings: PairSettings, index: int) -> Pair:
        return make_pair(self.photos, self.cutouts, settings, np.random.default_rng([self.seed, index]))

    def size(self, number: int) -> tuple[int, int]:
        """(height, width) of a batch."""
        low, high = self.settings.size, self.settings.max_size
        if high is None:
            return low
        rng = np.random.default_rng([self.seed, number, 1])
        height, width = (int(a + 32 * rng.integers((b - a) // 32 + 1)) for a, b in zip(low, high))
        return height, width

    def __iter__(self) -> Iterator[Batch]:
        return in_order(self.batch, self.start, step=self.step, workers=self.workers, prefetch=self.prefetch)
