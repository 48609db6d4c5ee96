"""Descriptor warm-up: before any decoder learns, features of corresponding cells are made alike and others unlike.

A dual-softmax contrast (each cell finds its counterpart among all sampled ones, in both directions) on every feature
map the network correlates. Minutes of it spare the decoders hours on meaningless correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pdc_sfm.settings import require
from pdc_sfm.training.batch import Batch


@dataclass(frozen=True)
class DescriptorSettings:
    """The contrastive loss on features, and when it applies."""

    iterations: int = 0  # number of first iterations that train descriptors only
    rate: float = 1e-3  # their learning rate
    weight: float = 0.0  # of the same loss beside the likelihood, after the warm-up
    temperature: float = 0.07  # of the softmax over the cells
    samples: int = 384  # cells per pair and level

    def __post_init__(self) -> None:
        require(self.iterations >= 0, "descriptors.iterations must be at least 0")
        require(self.rate > 0, "descriptors.rate must be positive")
        require(self.weight >= 0, "descriptors.weight must be at least 0")
        require(self.temperature > 0, "descriptors.temperature must be positive")
        require(self.samples >= 2, "descriptors.samples must be at least 2")


def descriptor_loss(
    reference: Sequence[Tensor], query: Sequence[Tensor], batch: Batch, settings: DescriptorSettings, seed: int
) -> tuple[Tensor, Tensor]:
    """Loss, and the share of cells whose nearest sampled descriptor is the right one, over feature maps (B, C, h, w).

    A map may have any resolution: it covers the whole image.
    """
    generator = torch.Generator().manual_seed(seed)
    losses, hits = [], []
    for maps_reference, maps_query in zip(reference, query, strict=True):
        for number in range(len(batch)):
            places = _places(batch, number, maps_reference.shape[-2:], settings.samples, generator)
            if len(places) < 2:
                continue
            first = _read(maps_reference[number], places[:, :2], batch.size)
            second = _read(maps_query[number], places[:, 2:], batch.query_size)
            cell = max(batch.query_size[0] / maps_query.shape[-2], batch.query_size[1] / maps_query.shape[-1])
            near = torch.cdist(places[:, 2:], places[:, 2:]) < 1.5 * cell
            near.fill_diagonal_(False)  # neighbors see half the same picture: they count neither as like nor as unlike
            score = (first @ second.T / settings.temperature).masked_fill(near, -1e4)
            right = torch.arange(len(places), device=score.device)
            losses.append((F.cross_entropy(score, right) + F.cross_entropy(score.T, right)) / 2)
            hits.append((score.argmax(1) == right).float().mean())
    if not losses:
        zero = sum(maps.sum() for maps in (*reference, *query)) * 0.0
        return zero, zero.detach()
    return torch.stack(losses).mean(), torch.stack(hits).mean().detach()


def _places(batch: Batch, number: int, cells: tuple[int, int], most: int, generator: torch.Generator) -> Tensor:
    """(N, 4): points of the reference, one in each of at most `most` cells, and their counterparts in the query."""
    points = batch.points[number] if batch.points else None
    if points is not None:
        keep = torch.randperm(len(points), generator=generator)[:most]
        return points[keep.to(points.device)]
    height, width = batch.size
    y = (((torch.arange(cells[0]) + 0.5) * height / cells[0]).long()).clamp(max=height - 1).to(batch.flow.device)
    x = (((torch.arange(cells[1]) + 0.5) * width / cells[1]).long()).clamp(max=width - 1).to(batch.flow.device)
    yy, xx = (grid.reshape(-1) for grid in torch.meshgrid(y, x, indexing="ij"))
    flow = batch.flow[number][:, yy, xx].T
    target = flow + torch.stack([xx, yy], 1)
    limit = target.new_tensor([batch.query_size[1] - 1, batch.query_size[0] - 1])
    inside = ((target >= 0) & (target <= limit)).all(1)
    seen = inside & batch.valid[number][yy, xx] & ~batch.hidden[number][yy, xx]
    kept = seen.nonzero()[:, 0]
    kept = kept[torch.randperm(len(kept), generator=generator)[:most].to(kept.device)]
    return torch.cat([torch.stack([xx, yy], 1)[kept].float(), target[kept]], 1)


def _read(maps: Tensor, xy: Tensor, size: tuple[int, int]) -> Tensor:
    """Unit descriptors (N, C) of a map (C, h, w) at image points."""
    grid = (xy + 0.5) / xy.new_tensor([size[1], size[0]]) * 2 - 1
    values = F.grid_sample(maps[None].float(), grid[None, None], padding_mode="border", align_corners=False)
    return F.normalize(values[0, :, 0].T, dim=1)
