"""Global and local correlation of feature maps.

The local correlation compares each pixel with a (2r+1)^2 window. Written as shifted products it reads both maps once per
shift. Here the reference is cut into 8x8 tiles, and one batched matrix product compares the 64 pixels of a tile with the
16x16 pixels around it; each pixel's window is then a strided read of that product.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

from pdc_sfm.network.constants import made_once

TILE = 8  # cells along a side that are compared at once: of (8 + 2 x 4)^2 products with a window of 9x9, 32 % are used


def global_correlation(reference: Tensor, query: Tensor) -> Tensor:
    """Inner products of all pairs of positions, the query's position (row-major) in the channels: (B, Hq*Wq, H, W)."""
    batch, _, height, width = reference.shape
    products = query.flatten(2).transpose(1, 2) @ reference.flatten(2)  # (B, Hq*Wq, H*W)
    return products.view(batch, -1, height, width)


def cut_mean(maps: Tensor, scale: float = 1.0) -> Tensor:
    """As `cut`, divided by the number of channels: products with it are means over channels, times a scale."""
    return cut(maps, scale / maps.shape[1])


def cut(maps: Tensor, factor: float = 1.0) -> Tensor:
    """(B, C, H, W) -> (B * tiles, 64, C): a map as its tiles, padded with zeros, times a factor."""
    batch, channels, height, width = maps.shape
    rows, columns = -(-height // TILE), -(-width // TILE)
    last = _padded(maps.permute(0, 2, 3, 1), (0, 0, 0, columns * TILE - width, 0, rows * TILE - height))
    tiles = last.reshape(batch, rows, TILE, columns, TILE, channels).transpose(2, 3)
    if factor != 1 and not torch.is_grad_enabled():  # copied and multiplied at once
        found = tiles.new_empty(tiles.shape)
        tiles = torch.mul(tiles, factor, out=found)
    elif factor != 1:
        tiles = tiles * factor
    return tiles.reshape(batch * rows * columns, TILE * TILE, channels)


def _padded(x: Tensor, pad: tuple[int, ...]) -> Tensor:
    return F.pad(x, pad) if any(pad) else x  # by nothing it would still copy


class Tiles:
    """The neighborhoods of every 8x8 tile of a query map, ready to be compared with reference maps of the same size."""

    def __init__(self, neighbors: Tensor, shape: tuple[int, int, int, int], radius: int):
        self.neighbors = neighbors  # (B * tiles, side * side, C)
        self.shape = shape
        self.radius = radius

    @classmethod
    def of(cls, query: Tensor, radius: int) -> Tiles:
        batch, channels, height, width = query.shape
        side = TILE + 2 * radius
        rows, columns = -(-height // TILE), -(-width // TILE)
        right, bottom = columns * TILE - width + radius, rows * TILE - height + radius
        last = F.pad(query.permute(0, 2, 3, 1), (0, 0, radius, right, radius, bottom))  # (B, H', W', C)
        blocks = last.unfold(1, side, TILE).unfold(2, side, TILE)  # (B, rows, columns, C, side, side)
        blocks = blocks.permute(0, 1, 2, 4, 5, 3).reshape(batch * rows * columns, side * side, channels)
        return cls(blocks, tuple(query.shape), radius)

    def join(self, tiles: Tensor) -> Tensor:
        """(B * tiles, 64, C) -> (B, C, H, W): the inverse of `cut`."""
        batch, _, height, width = self.shape
        rows, columns = -(-height // TILE), -(-width // TILE)
        maps = tiles.reshape(batch, rows, columns, TILE, TILE, -1).transpose(2, 3)
        maps = maps.reshape(batch, rows * TILE, columns * TILE, -1)
        return maps[:, :height, :width].permute(0, 3, 1, 2)

    def multiply(self, reference: Tensor) -> Tensor:
        """Every pixel of a tile with every neighbor of the tile: (B * tiles, 64, side^2). The reference is cut, once for several
        queries; by `cut_mean` products are means over channels.
        """
        return torch.bmm(reference, self.neighbors.transpose(1, 2))

    def windows(self, products: Tensor, slope: float = 1.0) -> Tensor:
        """The window of each pixel out of the tiles' products, through a leaky ReLU: (B, (2r+1)^2, H, W)."""
        batch, _, height, width = self.shape
        rows, columns = -(-height // TILE), -(-width // TILE)
        found = _Band.apply(products, self.radius, (batch, rows, columns), slope)
        return found[:, :height, :width].permute(0, 3, 1, 2)


class _Band(torch.autograd.Function):
    """Reads each pixel's own window from the products of its tile, a strided view, through a leaky ReLU; backward writes it.

    (B * rows * columns, 64, side^2) -> (B, rows * 8, columns * 8, (2r+1)^2), in one pass.
    """

    @staticmethod
    def view(products: Tensor, radius: int, grid: tuple[int, int, int]) -> Tensor:
        """(B, rows, 8, columns, 8, 2r+1, 2r+1), of the memory of the products."""
        (batch, rows, columns), side, window = grid, TILE + 2 * radius, 2 * radius + 1
        tile = TILE * TILE * side * side
        in_tile = TILE * side * side + side, side * side + 1
        strides = (rows * columns * tile, columns * tile, in_tile[0], tile, in_tile[1], side, 1)
        return products.as_strided((batch, rows, TILE, columns, TILE, window, window), strides)

    @staticmethod
    def forward(ctx: FunctionCtx, products: Tensor, radius: int, grid: tuple[int, int, int], slope: float) -> Tensor:
        ctx.radius, ctx.grid, ctx.slope, ctx.like = radius, grid, slope, products.shape
        batch, rows, columns = grid
        view = _Band.view(products.contiguous(), radius, grid)
        found = view.new_empty(view.shape)
        torch._C._nn.leaky_relu(view, slope, out=found)
        found = found.view(batch, rows * TILE, columns * TILE, -1)
        ctx.save_for_backward(found)
        return found

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (found,) = ctx.saved_tensors
        gradient = torch.where(found > 0, gradient, gradient * ctx.slope)  # the sign before is the sign after
        full = gradient.new_zeros(ctx.like)
        view = _Band.view(full, ctx.radius, ctx.grid)
        view.copy_(gradient.reshape(view.shape))
        return full, None, None, None


def band_mask(radius: int, values: Tensor) -> Tensor:
    """Lay (2r+1)^2 window values out like a tile's products, zeros outside the windows: (64, side^2)."""
    full = values.new_zeros((1, TILE * TILE, (TILE + 2 * radius) ** 2))
    _Band.view(full, radius, (1, 1, 1)).copy_(values.view(2 * radius + 1, 2 * radius + 1))
    return full[0]


def expected_way(scores: Tensor, height: int, width: int, unit: float = 1.0, reach: int = 2) -> Tensor:
    """The way (x, y) in `unit`s to the mean position under the softmax of scores of all positions of a map of the same size.

    (B, h*w, h, w) -> (B, 2, h, w).

    Only positions within `reach` of the best one take part: a softmax over all of them would be drawn to the middle.
    """
    near, places = _positions(height, width, reach, unit, scores.device, scores.dtype)
    best = scores.argmax(1)  # (B, h, w)
    weights = torch.softmax(scores.permute(0, 2, 3, 1) + near[best], -1).flatten(1, 2)
    found = torch.baddbmm(places[None], weights, places.expand(len(weights), -1, -1), beta=-1)
    return found.view(-1, height, width, 2).permute(0, 3, 1, 2)


@made_once
def _positions(
    height: int, width: int, reach: int, unit: float, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """For each best position 0 at those within reach and -inf at others (h*w, h*w), and all positions (h*w, 2) as (x, y)."""
    ys = torch.arange(height, device=device, dtype=dtype).repeat_interleave(width)
    xs = torch.arange(width, device=device, dtype=dtype).repeat(height)
    far = torch.maximum((ys - ys[:, None]).abs(), (xs - xs[:, None]).abs()) > reach
    return torch.zeros_like(far, dtype=dtype).masked_fill_(far, -torch.inf), torch.stack((xs, ys), 1) * unit


def expected_displacement(
    correlation: Tensor, radius: int, temperature: Tensor | float, start: Tensor | None = None, unit: float = 1.0
) -> Tensor:
    """Mean displacement (x, y) under the softmax of a local correlation: (B, (2r+1)^2, H, W) -> (B, 2, H, W).

    In `unit`s, added to a `start` (B, 2, H, W) if there is one.
    """
    steps = _displacements(radius, unit, correlation.device, correlation.dtype)
    scores = correlation.permute(0, 2, 3, 1)
    unscaled = isinstance(temperature, float) and temperature == 1
    return _mean_of(torch.softmax(scores if unscaled else scores * temperature, -1), steps, start)


@made_once
def _displacements(radius: int, unit: float, device: torch.device, dtype: torch.dtype) -> Tensor:
    """((2r+1)^2, 2), in the order of the local correlation."""
    steps = torch.arange(-radius, radius + 1, device=device, dtype=dtype) * unit
    dy, dx = torch.meshgrid(steps, steps, indexing="ij")
    return torch.stack((dx.flatten(), dy.flatten()), 1)


def _mean_of(weights: Tensor, values: Tensor, start: Tensor | None = None) -> Tensor:
    """Weighted sums of values (K, 2), and a start (B, 2, H, W): (B, H, W, K) -> (B, 2, H, W)."""
    batch, height, width, _ = weights.shape
    if start is None:
        return (weights @ values).permute(0, 3, 1, 2)
    rows, values = weights.flatten(1, 2), values.expand(batch, -1, -1)
    found = torch.baddbmm(start.flatten(2).mT, rows, values)
    return found.view(batch, height, width, 2).permute(0, 3, 1, 2)
