"""Cells of the network's finest level: the pixels in them, and means over the cells around each.

An image is cut into planes, pixel (i, j) of every cell in a plane of its own, (B, CELL, CELL, h, w): what is done to maps
of cells (B, C, h, w) is then done to all pixels, and a mean over a cell is one over planes. Not for training.

A CPU is fastest with few numbers at a time, in its cache: windows are sums of shifted maps. A GPU is fastest with few
operations, each on everything (`fused`): `subpixel_gpu.py` is written for it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

CELL = 4  # pixels along each side: the finest level has a quarter of the resolution (Sec. 3.2)
ALL = tuple(range(CELL))  # rows or columns of a cell
INNER = ALL[1:-1]
# A bell around a cell: a sum of two cells, of two such sums and so on, as far apart as the numbers say. Each n adds n^2 / 4
# to its variance, and one addition a direction to its cost. The numbers together are even, so that it has a middle.
Window = tuple[int, ...]


def fused(x: Tensor) -> bool:
    """Whether few operations count more than few numbers: where each must be launched."""
    return x.device.type != "cpu"


@functools.lru_cache(64)
def on_device(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Numbers, one a channel, (1, C, 1, 1): copied to the device once, as each copy makes the host wait."""
    return torch.tensor(values, dtype=torch.float32).view(1, -1, 1, 1).to(device)


def planes(image: Tensor) -> Tensor:
    """(B, 1, H, W) -> (B, CELL, CELL, H / CELL, W / CELL)."""
    height, width = (side // CELL for side in image.shape[-2:])
    return image.view(-1, height, CELL, width, CELL).permute(0, 2, 4, 1, 3).contiguous()


def upsample(cells: Tensor, taken: Sequence[int] = ALL, *, linear: bool = False) -> Tensor:
    """Maps (B, C, h, w) at the pixels in the `taken` rows and columns of each cell: (B, C, rows, columns, h, w).

    Interpolated between centers; beyond the outermost ones values stay as they are, or go on linearly.
    """
    height, width = cells.shape[-2:]
    padded = continued(cells, 1) if linear else F.pad(cells, (1, 1, 1, 1), mode="replicate")
    rows = cells.new_empty((*cells.shape[:2], len(taken), height, width + 2))
    found = cells.new_empty((*cells.shape[:2], len(taken), len(taken), height, width))
    sides = [_other_side(pixel) for pixel in taken]
    for n, (first, share) in enumerate(sides):
        torch.lerp(padded[..., 1:-1, :], padded[..., first : first + height, :], share, out=rows[:, :, n])
    for n, (first, share) in enumerate(sides):
        torch.lerp(rows[..., 1:-1], rows[..., first : first + width], share, out=found[:, :, :, n])
    return found


def continued(cells: Tensor, reach: int) -> Tensor:
    """Maps with so many cells more on each side, going on linearly.

    Both ways to compute it differ in the outermost corners, where maps may go on bilinearly as well.
    """
    if fused(cells):
        rows, columns = (_continuing(side, reach, cells.device) for side in cells.shape[-2:])
        return rows @ cells @ columns.T
    return torch.sub(2 * F.pad(cells, (reach,) * 4, mode="replicate"), F.pad(cells, (reach,) * 4, mode="reflect"))


@functools.lru_cache(32)
def _continuing(side: int, reach: int, device: torch.device) -> Tensor:
    """(side + 2 reach, side): the weights by which the cells of a row go on."""
    unit, pad = torch.eye(side)[None], (reach, reach)
    longer = 2 * F.pad(unit, pad, mode="replicate") - F.pad(unit, pad, mode="reflect")
    return longer[0].T.contiguous().to(device)


def read_through(image: Tensor, grid: Tensor, taken: Sequence[int]) -> Tensor:
    """An image (B, 1, H, W) at the pixels of cells, as planes, given the places of their centers (B, 2, h, w), -1 to 1."""
    grid = upsample(grid, taken, linear=True)
    places = grid.flatten(2, 4).permute(0, 2, 3, 1)
    return F.grid_sample(image, places, padding_mode="border", align_corners=True).view_as(grid[:, 0])


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
    """Half of these for the `INNER` pixels, whose neighbors are all in their own cell: (B, 2, 2, h, w) each."""
    across, along = image[:, 1:-1], image[:, :, 1:-1]
    return (across[:, :, 2:] - across[:, :, :-2]) / 2, (along[:, 2:] - along[:, :-2]) / 2


def products(x: Tensor, y: Tensor, z: Tensor) -> list[Tensor]:
    """Mean products over the pixels of each cell, of planes: xx, xy, yy, xz, yz, zz, (B, 1, h, w) each."""
    return [(a * b).mean((1, 2))[:, None] for a, b in ((x, x), (x, y), (y, y), (x, z), (y, z), (z, z))]


def sums(cells: Tensor, window: Window) -> Tensor:
    """Maps (B, C, h, w) weighted by a bell around each cell. Outside all is zero."""
    return _weighted(F.pad(cells, (sum(window) // 2,) * 4), window)


def means(cells: Tensor, sigmas: Sequence[float]) -> Tensor:
    """Of Gaussians around each cell, (B, 1, h, w) -> (B, sigmas, h, w); sigma is in cells. Their time does not depend on it."""
    rows, columns = (_averaging(side, tuple(sigmas), cells.device) for side in cells.shape[-2:])
    if fused(
        cells
    ):  # each sigma's rows with each one's columns, of which most are not wanted: two products and no copies
        found = rows.flatten(0, 1) @ (cells[:, 0] @ columns.flatten(0, 1).T)
        found = found.unflatten(2, (len(sigmas), -1)).unflatten(1, (len(sigmas), -1))
        return found.diagonal(dim1=1, dim2=3).movedim(-1, 1)
    return rows @ cells @ columns.mT


@functools.lru_cache(32)
def _averaging(side: int, sigmas: tuple[float, ...], device: torch.device) -> Tensor:
    """(sigmas, side, side): weights of the cells of a row for each of its cells."""
    places = torch.arange(side, dtype=torch.float32, device=device)
    weights = [-0.5 * ((places - places[:, None]) / sigma).square().clamp(max=24) for sigma in sigmas]
    return torch.softmax(torch.stack(weights), 2)


def smooth(cells: Tensor, window: Window) -> Tensor:
    """Means over near cells. What is linear, up to the border, stays the same."""
    return _weighted(continued(cells, sum(window) // 2), window)


@functools.lru_cache(32)
def smoothing(side: int, window: Window, device: torch.device) -> Tensor:
    """(side, side): the weights by which the cells of a row are smoothed."""
    longer = _continuing(side, sum(window) // 2, torch.device("cpu")).T[None, None]
    return F.conv2d(longer, bells(window, 1, longer.device).sum(2, keepdim=True))[0, 0].T.contiguous().to(device)


@functools.lru_cache(32)
def bells(window: Window, channels: int, device: torch.device) -> Tensor:
    """(channels, 1, n, n): the weights of a window around a cell, for each map."""
    row = torch.ones(1, dtype=torch.float64)
    for n in window:
        row = (F.pad(row, (0, n)) + F.pad(row, (n, 0))) / 2
    return torch.outer(row, row).repeat(channels, 1, 1, 1).to(device, torch.float32)


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


def slopes(cells: Tensor) -> Tensor:
    """(B, C, h, w) -> (B, C, 2, h, w): how much maps grow per pixel along x and y, smoothed over three cells."""
    padded = F.pad(cells, (2, 2, 2, 2), mode="replicate")
    rows = padded[..., :-2, :] + padded[..., 1:-1, :] + padded[..., 2:, :]
    smooth = (rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]) / 9  # a cell more on each side
    along_x = (smooth[..., 1:-1, 2:] - smooth[..., 1:-1, :-2]) / (2 * CELL)
    along_y = (smooth[..., 2:, 1:-1] - smooth[..., :-2, 1:-1]) / (2 * CELL)
    return torch.stack((along_x, along_y), 2)


def length(vectors: Tensor) -> Tensor:
    """(B, 2, h, w) -> (B, 1, h, w)."""
    if fused(vectors):
        return torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    x, y = vectors.split(1, 1)
    return torch.addcmul(x * x, y, y).sqrt_()


def longest_side(vectors: Tensor) -> Tensor:
    """(B, 2, h, w) -> (B, 1, h, w): the larger of |x| and |y|."""
    if fused(vectors):
        return torch.linalg.vector_norm(vectors, torch.inf, dim=1, keepdim=True)
    return vectors.abs().amax(1, keepdim=True)
