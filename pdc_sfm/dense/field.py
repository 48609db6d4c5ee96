"""Dense estimates on the device: tensors of a batch of directions, before anything is copied to the host.

Places are *normalized*: -1 and 1 are the borders of an image, whatever its size (as `grid_sample` has them with
align_corners=False), so that the network's resolution, a grid of cells and the original image share them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.dense.cells import continued, length, longest_side, on_device
from pdc_sfm.dense.confidence import confidence_map
from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.network import LevelOutput
from pdc_sfm.pixels import Size


@dataclass(frozen=True)
class Field:
    """Where the cells of references lie in queries, and how sure that is; all references are of one size, all queries too."""

    places: Tensor  # (B, 3, h, w): normalized, on the query, x and y; and 1 if they lie on it, else 0
    log_var: Tensor | None  # (B, M, h, w)
    logits: Tensor | None
    head_confidence: Tensor | None  # (B, 1, h, w): where a confidence head states it
    reference_size: Size  # (width, height) of the original images
    query_size: Size
    stride: int  # pixels of the network's input per cell

    @property
    def landing(self) -> Tensor:
        """(B, 2, h, w): normalized places on the query."""
        return self.places[:, :2]

    @property
    def valid(self) -> Tensor:
        """(B, 1, h, w): 1 if they lie on it, else 0."""
        return self.places[:, 2:]

    def confidence_within(self, radius: float = 1.0) -> Tensor:
        """(B, 1, h, w): the probability of an error below R pixels of the network's input, as of a `DenseEstimate`."""
        return confidence_map(self.head_confidence, self.log_var, self.logits, radius)

    def query_points(self, out: Tensor | None = None) -> Tensor:
        """(B, 2, h, w), in pixel indices of the original query; written to `out` if it is given."""
        width, height = self.query_size
        middle = on_device((width / 2 - 0.5, height / 2 - 0.5), self.landing.device)
        scale = on_device((width / 2, height / 2), self.landing.device)
        return torch.addcmul(middle, self.landing, scale, out=out)

    def reversed(self) -> Field:
        """Of a batch whose second half are the directions of its first half turned round: the other half for each."""
        half = len(self.places) // 2
        return replace(self, places=self.places.roll(half, 0), log_var=None, logits=None, head_confidence=None)


def field_of(output: LevelOutput, reference_size: Size, query_size: Size) -> Field:
    """The network's output for whole images (not views of them)."""
    flow = output.flow
    (rows, columns), (high, wide), (height, width) = flow.shape[-2:], output.reference_size, output.query_size
    start = _centers(rows, columns, (wide / width, high / height), flow.device)
    places = torch.empty((len(flow), 3, rows, columns), dtype=torch.float32, device=flow.device)
    landing, valid = places[:, :2], places[:, 2:]
    torch.addcmul(start, flow.float(), on_device((2 / width, 2 / height), flow.device), out=landing)
    torch.le(longest_side(landing), 1, out=valid)
    stride = round(wide / columns)
    stated = output.log_var, output.logits, output.head_confidence
    return Field(places, *stated, reference_size, query_size, stride)


def field_from(estimate: DenseEstimate) -> Field:
    """A finished estimate, of whatever strategy."""
    maps = lambda array: torch.from_numpy(np.ascontiguousarray(np.moveaxis(array, -1, 0)))[None]  # noqa: E731
    width, height = estimate.query_size
    points = maps(estimate.query_points)
    landing = (points + 0.5) * on_device((2 / width, 2 / height), points.device) - 1
    places = torch.cat((landing, torch.from_numpy(estimate.valid)[None, None].float()), 1)
    head = None if estimate.head_confidence is None else estimate.head_confidence[..., None]
    log_var, logits, stated = (None if x is None else maps(x) for x in (estimate.log_var, estimate.logits, head))
    sizes = estimate.reference_size, estimate.query_size
    return Field(places, log_var, logits, stated, *sizes, estimate.stride)


def cyclic_error(forward: Field, backward: Field) -> Tensor:
    """How far each cell of the reference is from itself after going to the query and back: (B, 1, h, w) original pixels.

    Infinite where the way leads out of one of the images. Between the outermost centers of cells and the border the flow
    back goes on linearly.
    """
    (rows, columns), device = backward.landing.shape[-2:], forward.landing.device
    shrink = on_device((columns / (columns + 2), rows / (rows + 2)), device)  # there is a cell more on each side
    grid = (forward.landing * shrink).permute(0, 2, 3, 1)
    back = F.grid_sample(continued(backward.places, 1)[:, :2], grid, align_corners=False)
    # 1 where the way back is valid, 0 elsewhere and beyond the query
    valid = F.grid_sample(backward.valid, forward.landing.permute(0, 2, 3, 1), mode="nearest", align_corners=False)
    stays = longest_side(back) < valid * forward.valid
    width, height = forward.reference_size
    half = width / 2, height / 2
    off = torch.addcmul(_start(*forward.landing.shape[-2:], half, device), back, on_device(half, device))
    return torch.where(stays, length(off), on_device((torch.inf,), device))


@functools.lru_cache(32)
def _start(rows: int, columns: int, half: tuple[float, float], device: torch.device) -> Tensor:
    """(1, 2, h, w): the way from centers of cells to the middle of an image, in pixels."""
    return -_centers(rows, columns, (1.0, 1.0), device) * on_device(half, device)


@functools.lru_cache(32)
def _centers(rows: int, columns: int, scale: tuple[float, float], device: torch.device) -> Tensor:
    """(1, 2, h, w): centers of cells, normalized and then scaled away from the first corner."""
    x, y = (scale[axis] * (torch.arange(n) + 0.5) * 2 / n - 1 for axis, n in enumerate((columns, rows)))
    return torch.stack(torch.meshgrid(x, y, indexing="xy"))[None].to(device, torch.float32)
