"""What the trainer feeds the network: images with dense or sparse ground truth, as tensors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdc_sfm.training.sources import Sample


@dataclass
class Batch:
    """B image pairs of one size and what is known about them. Unknown flow may hold anything, NaN included."""

    reference: Tensor  # (B, 3, H, W) float in [0, 1]
    query: Tensor  # (B, 3, Hq, Wq)
    flow: Tensor  # (B, 2, H, W): reference pixel x lies at x + flow(x) in the query
    valid: Tensor  # (B, H, W) bool: the flow is supervised here (false in the injective or occlusion mask)
    hidden: Tensor  # (B, H, W) bool: known to have no counterpart (occluded, out of view, an unrelated image)
    points: tuple[Tensor | None, ...] = ()  # per pair None or (N, 4): x, y in the reference, x, y in the query

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the reference."""
        return tuple(self.reference.shape[-2:])

    @property
    def query_size(self) -> tuple[int, int]:
        """(height, width) of the query."""
        return tuple(self.query.shape[-2:])

    def __len__(self) -> int:
        return len(self.reference)

    def to(self, device: torch.device | str) -> Batch:
        """The batch on a device; images in channels-last order, which the convolutions prefer."""

        def move(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(move(item) for item in value)
            return value.to(device, non_blocking=True) if isinstance(value, Tensor) else value

        moved = Batch(*(move(getattr(self, field.name)) for field in dataclasses.fields(self)))
        moved.reference = moved.reference.contiguous(memory_format=torch.channels_last)
        moved.query = moved.query.contiguous(memory_format=torch.channels_last)
        return moved


def collate(samples: list[Sample]) -> Batch:
    """Samples of one size -> a batch."""

    def images(name: str) -> Tensor:
        stack = torch.from_numpy(np.stack([getattr(s, name) for s in samples]))
        return stack.permute(0, 3, 1, 2).float() / 255  # channels last in memory, as the convolutions want it

    def masks(name: str) -> Tensor:
        return torch.from_numpy(np.stack([getattr(s, name) for s in samples]))

    flow = torch.from_numpy(np.stack([s.flow for s in samples])).permute(0, 3, 1, 2).contiguous()
    points = tuple(None if s.points is None else torch.from_numpy(s.points).float() for s in samples)
    points = () if all(p is None for p in points) else points
    return Batch(images("reference"), images("query"), flow, masks("valid"), masks("hidden"), points)
