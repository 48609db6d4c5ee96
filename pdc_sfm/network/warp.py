"""Warping and resizing: the only implementation of both in the network."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def pixel_grid(height: int, width: int, like: Tensor) -> Tensor:
    """Pixel indices (x, y) of every pixel: (1, 2, H, W)."""
    ys = torch.arange(height, device=like.device, dtype=like.dtype)
    xs = torch.arange(width, device=like.device, dtype=like.dtype)
    y, x = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack((x, y))[None]


def warp(query: Tensor, flow: Tensor) -> Tensor:
    """Sample `query` at x + flow(x): bilinear, zeros outside. Query and flow may differ in size.

    query (B, C, Hq, Wq), flow (B, 2, H, W) in pixels of the query map -> (B, C, H, W)
    """
    height, width = query.shape[-2:]
    points = flow + pixel_grid(*flow.shape[-2:], like=flow)
    scale = points.new_tensor((max(width - 1, 1), max(height - 1, 1))).view(1, 2, 1, 1)
    grid = (2 * points / scale - 1).permute(0, 2, 3, 1)
    return F.grid_sample(query, grid.to(query.dtype), mode="bilinear", padding_mode="zeros", align_corners=True)


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
    scale_q = flow.new_tensor((qw1 / qw0, qh1 / qh0)).view(1, 2, 1, 1)
    ratio = flow.new_tensor((qw1 / qw0 * rw0 / rw1 - 1, qh1 / qh0 * rh0 / rh1 - 1)).view(1, 2, 1, 1)
    flow = flow * scale_q
    if (qw1 * rw0, qh1 * rh0) == (qw0 * rw1, qh0 * rh1):
        return flow
    cell = flow.new_tensor((rw1 / flow.shape[-1], rh1 / flow.shape[-2])).view(1, 2, 1, 1)
    corner_coordinates = (pixel_grid(*flow.shape[-2:], like=flow) + 0.5) * cell
    return flow + corner_coordinates * ratio
