"""Cells of the network's finest level: the pixels in them, and means over the cells around each.

An image is cut into planes, pixel (i, j) of every cell in a plane of its own, (B, CELL, CELL, h, w): what is done to maps
of cells (B, C, h, w) is then done to all pixels, and a mean over a cell is one over planes. Not for training.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

CELL = 4  # pixels along each side
ALL = tuple(range(CELL))  # rows or columns of a cell
INNER = ALL[1:-1]
# A bell around a cell: a sum of two cells, of two such sums and so on, as far apart as the numbers say. Each n adds n^2 / 4
# to its variance, and one addition a direction to its cost. The numbers together are even, so that it has a middle.
Window = tuple[int, ...]


def planes(image: Tensor) -> Tensor:
    """(B, 1, H, W) -> (B, CELL, CELL, H / CELL, W / CELL)."""
    height, width = (side // CELL for side in image.shape[-2:])
    return image.view(-1, height, CELL, width, CELL).permute(0, 2, 4, 1, 3).contiguous()


def spread(cells: Tensor, taken: Sequence[int] = ALL, *, linear: bool = False) -> Tensor:
    """Maps (B, C, h, w) at the pixels in the `taken` rows and columns of each cell: (B, C, rows, columns, h, w).

    Interpolated between centres; beyond the outermost ones values stay as they are, or go on linearly.
    """
    height, width = cells.shape[-2:]
    padded = F.pad(cells, (1, 1, 1, 1), mode="replicate")
    if linear:
        padded = 2 * padded - F.pad(cells, (1, 1, 1, 1), mode="reflect")
    rows = cells.new_empty((*cells.shape[:2], len(taken), height, width + 2))
    found = cells.new_empty((*cells.shape[:2], len(taken), len(taken), height, width))
    sides = [_other_side(pixel) for pixel in taken]
    for n, (first, share) in enumerate(sides):
        torch.lerp(padded[..., 1:-1, :], padded[..., first : first + height, :], share, out=rows[:, :, n])
    for n, (first, share) in enumerate(sides):
        torch.lerp(rows[..., 1:-1], rows[..., first : first + width], share, out=found[:, :, :, n])
    return found


def _other_side(pixel: int) -> tuple[int, float]:
    """Of the two cells that a pixel lies between, the one it is not in: its place in a padded map, and its share."""
    offset = (pixel + 0.5) / CELL - 0.5
    return (2, offset) if offset > 0 else (0, -offset)


def differences(image: Tensor) -> tuple[Tensor, Tensor]:
    """Along x and along y of planes, of the next pixel and the one before; 0 at the border of the image."""
    return _along_x(image), _along_x(image.transpose(1, 2).mT).mT.transpose(1, 2)


def _along_x(image: Tensor) -> Tensor:
    found = torch.empty_like(image)
    torch.sub(image[:, :, 2:], image[:, :, :-2], out=found[:, :, 1:-1])
    torch.sub(image[:, :, 1, :, 1:], image[:, :, -1, :, :-1], out=found[:, :, 0, :, 1:])  # the last lies a cell before
    torch.sub(image[:, :, 0, :, 1:], image[:, :, -2, :, :-1], out=found[:, :, -1, :, :-1])
    found[:, :, 0, :, 0] = found[:, :, -1, :, -1] = 0
    return found


def inner_gradient(image: Tensor) -> tuple[Tensor, Tensor]:
    """Half of these for the `INNER` pixels, whose neighbours are all in their own cell: (B, 2, 2, h, w) each."""
    across, along = image[:, 1:-1], image[:, :, 1:-1]
    return (across[:, :, 2:] - across[:, :, :-2]) / 2, (along[:, 2:] - along[:, :-2]) / 2


def sums(cells: Tensor, window: Window) -> Tensor:
    """Maps (B, C, h, w) weighted by a bell around each cell. Outside all is zero."""
    reach = sum(window) // 2
    return _weighted(F.pad(cells, (reach,) * 4), window)


def means(cells: Tensor, sigma: float) -> Tensor:
    """Of a Gaussian around each cell; sigma is in cells. For wide windows: its time does not depend on sigma."""
    rows, columns = (_averaging(side, sigma, cells.device) for side in cells.shape[-2:])
    return rows @ cells @ columns.T


@functools.lru_cache(32)
def _averaging(side: int, sigma: float, device: torch.device) -> Tensor:
    """(side, side): weights of the cells of a row for each of its cells."""
    places = torch.arange(side, dtype=torch.float32, device=device)
    return torch.softmax(-0.5 * ((places - places[:, None]) / sigma).square().clamp(max=24), 1)


def evened_out(cells: Tensor, window: Window) -> Tensor:
    """Means over near cells. What is linear, up to the border, stays the same."""
    pad = (sum(window) // 2,) * 4
    return _weighted(2 * F.pad(cells, pad, mode="replicate") - F.pad(cells, pad, mode="reflect"), window)


def _weighted(cells: Tensor, window: Window) -> Tensor:
    """Weighted sums of what is smaller by the window's reach on each side."""
    for n in window:
        cells = cells[..., :-n, :] + cells[..., n:, :]
    for n in window:
        cells = cells[..., :-n] + cells[..., n:]
    return cells.mul_(0.25 ** len(window))


def largest(cells: Tensor, reach: int) -> Tensor:
    """The largest value (B, C, h, w) among cells up to `reach` rows and columns away."""
    height, width = cells.shape[-2:]
    padded = F.pad(cells, (reach,) * 4, mode="replicate")
    offsets = range(2 * reach + 1)
    rows = functools.reduce(torch.maximum, [padded[..., n : n + height, :] for n in offsets])
    return functools.reduce(torch.maximum, [rows[..., n : n + width] for n in offsets])
