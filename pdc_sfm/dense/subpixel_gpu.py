"""Sub-pixel alignment for GPUs: the computation of `subpixel.py` in few operations on whole batches.

Images stay images: pixel (i, j) of cell (y, x) is [..., y, i, x, j] of a view. Windows are depthwise convolutions with fixed
kernels, which torch computes in full float32 (others may run in TF32, too coarse for coordinates); constant factors are part of
the kernels, constant terms are their biases. What makes maps longer or smoother along an axis is a matrix product.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.dense import subpixel as same
from pdc_sfm.dense.cells import ALL, CELL, Window, bells, continued, length, longest_side, on_device, smoothing
from pdc_sfm.dense.confidence_features import FIT, confidences
from pdc_sfm.dense.gray import LEAST_CONTRAST, NEIGHBORHOOD, Gray
from pdc_sfm.network import LevelOutput

NOTHING = 1e-6  # added to sums of weights, which are above .03 where a cell is seen: what is not has the mean 0


def align_with_features(output: LevelOutput, reference: Gray, query: Gray) -> tuple[LevelOutput, Tensor | None]:
    """As `subpixel.align_with_features`."""
    flow = start = output.flow.float().contiguous()
    turned = _slopes(flow)
    query_per_reference = turned[:, :, :2]
    for window, taken in same.PASSES:
        flow = _smoothed(flow)
        warped, seen = _warped(query.image, flow, taken)
        fit = _fit(reference.cells, warped, seen, window, taken)
        step = fit.step()
        for axis in (0, 1):
            along = query_per_reference[:, :, axis]
            flow = torch.addcmul(flow, along, step[:, axis, None], value=-same.LARGEST_STEP)
        shift = flow - start
        longest = length(shift).clamp_(min=same.LARGEST_SHIFT)
        flow = torch.addcdiv(start, shift, longest, value=same.LARGEST_SHIFT)
    output = replace(output, flow=start, log_var=_float(output.log_var), logits=_float(output.logits))
    if output.log_var is None:
        return replace(output, flow=flow), None
    looseness, noise = fit.looseness(), fit.noise()
    bend = length(_off_smooth(flow))
    only_first = (same.LARGEST_JUMP,) + (0.0,) * (output.log_var.shape[1] - 1)  # of the mixture's components
    roughness = bend * (bend < on_device(only_first, flow.device))  # (B, M, h, w): 0 of the others
    variance = torch.addcmul(on_device((0.0,), flow.device), roughness, roughness, value=same.ROUGHNESS)
    variance[:, :1].addcmul_(noise, looseness, value=1 / same.INDEPENDENT)
    found = replace(output, flow=flow, log_var=_widened(output.log_var, variance))
    largest = F.max_pool2d(bend, 5, 1, 2)
    known = torch.cat((noise, looseness, roughness[:, :1], bend, largest, *_zooms(turned)), 1)
    low, high = (on_device(values, flow.device) for values in _limits())
    return found, torch.cat((*confidences(output, found), torch.clamp(known, low, high).log_()), 1)


def _float(maps: Tensor | None) -> Tensor | None:
    return None if maps is None else maps.float()


@functools.cache
def _limits() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Least and largest of what is known of a cell: of magnifications, not of their squares."""
    low, high, scale = zip(*FIT)
    return tuple(a**b for a, b in zip(low, scale)), tuple(a**b for a, b in zip(high, scale))


def _slopes(flow: Tensor) -> Tensor:
    """(B, 2, 3, h, w): dx/dx, dx/dy, its negative dx/dx of where pixels lie, and the same of y; as `cells.slopes`, plus 1."""
    padded = F.pad(flow, (2, 2, 2, 2), mode="replicate")
    kernels, ones = _slope_kernels(flow.device)
    return F.conv2d(padded, kernels, ones, groups=2).unflatten(1, (2, 3))


@functools.lru_cache(8)
def _slope_kernels(device: torch.device) -> tuple[Tensor, Tensor]:
    """(6, 1, 5, 5), and what is added."""
    box, step = torch.tensor((0.0, 1.0, 1.0, 1.0, 0.0)), torch.tensor((-1.0, -1.0, 0.0, 1.0, 1.0))
    along_x = torch.outer(box, step) / (9 * 2 * CELL)
    kernels = torch.stack((along_x, along_x.T, -along_x)).repeat(2, 1, 1)[:, None]
    return kernels.to(device), torch.tensor((1.0, 0.0, -1.0, 0.0, 1.0, 0.0)).to(device)


def _zooms(turned: Tensor) -> tuple[Tensor, Tensor]:
    """The least and the largest magnification (B, 1, h, w): a map is a turn with zoom plus a mirrored one."""
    one, other = turned[:, 0, :2], turned[:, 1, 1:]  # (a, b) and (d, -c)
    parts = torch.empty_like(turned[:, :, :2])
    torch.lerp(one, other, 0.5, out=parts[:, 0])
    torch.sub(one, parts[:, 0], out=parts[:, 1])
    turning, mirroring = torch.linalg.vector_norm(parts, dim=2).split(1, 1)
    return (turning - mirroring).abs_(), turning + mirroring


def _off_smooth(flow: Tensor) -> Tensor:
    """How far the smoothed flow lies off."""
    rows, columns = (smoothing(side, same.SMOOTHING, flow.device) for side in flow.shape[-2:])
    width = flow.shape[-1]
    return torch.addmm(flow.view(-1, width), (rows @ flow).view(-1, width), columns.T, beta=-1).view_as(flow)


def _smoothed(flow: Tensor) -> Tensor:
    off = _off_smooth(flow)
    return torch.addcmul(flow, off, length(off) < same.LARGEST_JUMP)


def _widened(log_var: Tensor, variance: Tensor) -> Tensor:
    """log(sigma^2 + v / (1 + v)), of a variance v; where it is 0, log sigma^2."""
    return torch.logaddexp(log_var, F.logsigmoid(variance.log_()))


def _warped(query: Tensor, flow: Tensor, taken: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The query (B, 1, H, W) where the pixels of cells lie, normalized: (B, h, n, w, n); and whether it shows the cells."""
    height, width = query.shape[-2:]
    scale = on_device((2 / (width - 1), 2 / (height - 1)), flow.device)
    grid = torch.addcmul(same.places(*flow.shape[-2:], width, height, flow.device), flow, scale)
    pixels = _enlarged(continued(grid, 1))[..., CELL:-CELL, CELL:-CELL]
    image = F.grid_sample(query, pixels.permute(0, 2, 3, 1), padding_mode="border", align_corners=True)
    seen = longest_side(grid) <= 1
    return normalized(image, seen, taken), seen


def _enlarged(cells: Tensor) -> Tensor:
    return F.interpolate(cells, scale_factor=CELL, mode="bilinear", align_corners=False)


def _pixels(image: Tensor, taken: tuple[int, ...] = ALL) -> Tensor:
    """(B, C, H, W) -> (B, C, h, n, w, n), of its memory."""
    batch, channels, height, width = image.shape
    cut = image.view(batch, channels, height // CELL, CELL, width // CELL, CELL)
    return cut[:, :, :, taken[0] : taken[-1] + 1, :, taken[0] : taken[-1] + 1]


def normalized(image: Tensor, seen: Tensor | None = None, taken: tuple[int, ...] = ALL) -> Tensor:
    """As `gray.normalized`, of an image (B, 1, H, W): (B, h, n, w, n)."""
    own = _pixels(image, taken)
    moments = torch.pow(own, on_device((1.0, 2.0, 0.0), image.device)[..., None, None]).mean((3, 5))
    if seen is not None:
        moments = moments * seen
    moments = _sums(moments, NEIGHBORHOOD, (-1.0, 1.0, 1.0), (0.0, 0.0, NOTHING))
    # minus the mean, the mean square plus the least variance, 1
    moments = torch.addcdiv(on_device((0.0, LEAST_CONTRAST**2, 0.0), image.device), moments, moments[:, 2:])
    minus_mean, square, _ = moments.split(1, 1)
    scale = torch.addcmul(square, minus_mean, minus_mean, value=-1).rsqrt_()
    shift, scale = _pixels(_enlarged(moments[:, ::2] * scale), taken).unbind(1)
    return torch.addcmul(shift, own[:, 0], scale)


def as_planes(pixels: Tensor) -> Tensor:
    """(..., h, n, w, n) -> (..., n, n, h, w), of its memory: the order of `cells.planes`."""
    return pixels.movedim((-3, -1), (-4, -3))


def _sums(cells: Tensor, window: Window, factors: tuple[float, ...], added: tuple[float, ...]) -> Tensor:
    """Maps weighted by a bell around each cell, times a factor and plus a number for each map. Outside all is zero."""
    kernels, bias = _kernels(window, factors, added, cells.device)
    return F.conv2d(cells, kernels, bias, padding=sum(window) // 2, groups=len(factors))


@functools.lru_cache(32)
def _kernels(
    window: Window, factors: tuple[float, ...], added: tuple[float, ...], device: torch.device
) -> tuple[Tensor, Tensor]:
    weights = bells(window, len(factors), torch.device("cpu")) * torch.tensor(factors).view(-1, 1, 1, 1)
    return weights.to(device), torch.tensor(added).to(device)


@dataclass(frozen=True)
class _Solved:
    """Weighted sums of products around each cell, of slopes x and y and of the residual r."""

    sums: Tensor  # (B, 10, h, w): xx, xr / STEP, xy; rx, rr, ry; yx, yr / STEP, yy; and of the weights
    solution: (
        Tensor  # (B, 3, h, w): the step along x times determinant / STEP, the determinant, the step along y likewise
    )

    def step(self) -> Tensor:
        """As `subpixel._Fit.step`, in units of the largest, which is 1: (B, 2, h, w)."""
        long = self.solution[:, ::2]
        return long / torch.maximum(length(long), self.solution[:, 1:2])

    def looseness(self) -> Tensor:
        return (self.sums[:, :1] + self.sums[:, 8:9]) / self.solution[:, 1:2]

    def noise(self) -> Tensor:
        return self.sums[:, 4:5] / self.sums[:, 9:]


def _fit(reference: Tensor, warped: Tensor, seen: Tensor, window: Window, taken: tuple[int, ...]) -> _Solved:
    """Of the reference's planes (B, CELL, CELL, h, w) and the query's pixels (B, h, n, w, n)."""
    batch, height, count, width, _ = warped.shape
    whole = (batch, 3, height * count, width * count)
    all_three = warped.new_zeros(whole) if taken == ALL else warped.new_empty(whole)  # x, r, y
    pixels = all_three.view(batch, 3, height, count, width, count)
    planes = as_planes(pixels)
    own, other = reference[:, taken[0] : taken[-1] + 1, taken[0] : taken[-1] + 1], as_planes(warped)
    torch.sub(own, other, out=planes[:, 1])
    if taken == ALL:  # slopes of the mean of both, over two pixels; 0 at the border of the image
        slope = 0.25
        both = other.add_(own).movedim((-4, -3), (-3, -1)).reshape(batch, *whole[2:])
        torch.sub(both[..., 2:], both[..., :-2], out=all_three[:, 0, :, 1:-1])
        torch.sub(both[:, 2:], both[:, :-2], out=all_three[:, 2, 1:-1])
    else:  # of the reference; their neighbors are all in their own cell
        slope = 0.5
        torch.sub(reference[:, 1:-1, 2:], reference[:, 1:-1, :-2], out=planes[:, 0])
        torch.sub(reference[:, 2:, 1:-1], reference[:, :-2, 1:-1], out=planes[:, 2])
    products = (pixels[:, :, None] * pixels[:, None]).mean((4, 6)).flatten(1, 2)
    one = on_device((1.0,), warped.device)
    weighted = products.new_empty((batch, 10, height, width))
    weight = weighted[:, 9:]
    torch.mul(seen, torch.add(one, products[:, 4:5], alpha=1 / same.ROBUST**2).rsqrt_(), out=weight)
    torch.mul(products, weight, out=weighted[:, :9])
    square, along = slope * slope, slope / same.LARGEST_STEP
    factors = (square, along, square, 1.0, 1.0, 1.0, square, along, square, 1.0)
    stiff = tuple({0: same.STIFFNESS, 8: same.STIFFNESS, 9: NOTHING}.get(n, 0.0) for n in range(10))
    sums = _sums(weighted, window, factors, stiff)
    return _Solved(sums, torch.linalg.cross(sums[:, 6:9], sums[:, :3], dim=1))
