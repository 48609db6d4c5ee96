"""Warping and resizing: the only implementation of both in the network."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.network.constants import channels, made_once
from pdc_sfm.pixels import ImageShape


def pixel_grid(height: int, width: int, like: Tensor) -> Tensor:
    """Pixel indices (x, y) of every pixel: (1, 2, H, W). It is shared: not to be written to."""
    return _pixel_grid(height, width, like.device, like.dtype)


@made_once
def _pixel_grid(height: int, width: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    ys = torch.arange(height, device=device, dtype=dtype)
    xs = torch.arange(width, device=device, dtype=dtype)
    y, x = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack((x, y))[None]


def warp(query: Tensor, flow: Tensor, stride: int = 1) -> Tensor:
    """Sample `query` at x + flow(x) / stride: bilinear, zeros outside. Query and flow may differ in size.

    query (B, C, Hq, Wq), flow (B, 2, H, W) in pixels, of which a cell of the query map has `stride` -> (B, C, H, W)
    """
    start, factor = _sampling(tuple(flow.shape[-2:]), tuple(query.shape[-2:]), stride, flow.device, flow.dtype)
    grid = torch.addcmul(start, flow, factor).permute(0, 2, 3, 1)
    return F.grid_sample(query, grid.to(query.dtype), mode="bilinear", padding_mode="zeros", align_corners=True)


@made_once
def _sampling(
    size: ImageShape, query_size: ImageShape, stride: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Where no flow points, in [-1, 1] over the query (1, 2, H, W), and what a pixel of flow adds to it (1, 2, 1, 1)."""
    steps = [2 / max(side - 1, 1) for side in query_size[::-1]]
    start = _pixel_grid(*size, device, dtype) * channels(tuple(steps), device, dtype) - 1
    return start, channels(tuple(step / stride for step in steps), device, dtype)


def resize(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear, corners on corners (align_corners=False)."""
    return x if tuple(x.shape[-2:]) == tuple(size) else F.interpolate(x, size, mode="bilinear", align_corners=False)


def resize_area(image: Tensor, size: tuple[int, int]) -> Tensor:
    """Area interpolation, in floating point."""
    return image if tuple(image.shape[-2:]) == tuple(size) else F.interpolate(image, size, mode="area")


def rescale_flow(
    flow: Tensor,
    reference_sizes: tuple[tuple[int, int], tuple[int, int]],
    query_sizes: tuple[tuple[int, int], tuple[int, int]],
) -> Tensor:
    """Express a flow in the pixels of both images at other sizes: (from, to) of the reference and of the query, (H, W).

    A reference pixel x becomes (x + .5) * Wr'/Wr - .5 and the query point x + Y(x) scales likewise with Wq'/Wq. For equal
    scales this is a multiplication, as in the published network.
    """
    (rh0, rw0), (rh1, rw1) = reference_sizes
    (qh0, qw0), (qh1, qw1) = query_sizes
    per_axis = lambda x, y: channels((x, y), flow.device, flow.dtype)  # noqa: E731
    scaled = flow * per_axis(qw1 / qw0, qh1 / qh0)
    if (qw1 * rw0, qh1 * rh0) == (qw0 * rw1, qh0 * rh1):
        return scaled
    ratio = per_axis(qw1 / qw0 * rw0 / rw1 - 1, qh1 / qh0 * rh0 / rh1 - 1)
    cell = per_axis(rw1 / flow.shape[-1], rh1 / flow.shape[-2])
    corner_coordinates = (pixel_grid(flow.shape[-2], flow.shape[-1], flow) + 0.5) * cell
    return scaled + corner_coordinates * ratio
