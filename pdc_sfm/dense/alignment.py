"""Sub-pixel alignment: the network finds the place, the images themselves say where in it, to a fraction of a pixel.

Around each cell of the finest level the window of the query is shifted until it fits the reference's best in the
least-squares sense (Lucas and Kanade 1981). Both are compared after local normalisation of brightness and contrast, so
that light may differ; the query is read through the flow, so that windows may be turned, scaled and bent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.network import LevelOutput
from pdc_sfm.network.judge import HIGHEST, Judge, mixture_stating, stated
from pdc_sfm.network.mixture import p_r
from pdc_sfm.network.warp import resize, resize_area, warp

WINDOWS = (8.0, 6.0, 4.0)  # px: Gaussian windows of the iterations, wide ones first
NEIGHBOURHOOD = 4.0  # px: of the Gaussian that brightness and contrast are measured in
LEAST_CONTRAST = 0.01  # standard deviation of grey values in [0, 1] below which there is only noise
STIFFNESS = 4e-3  # texture it takes to move a cell, in squared gradients of the normalised image
ROBUST = 0.5  # residuals above this, in local standard deviations, count less
SMOOTHING = 1.5  # cells: of the Gaussian that evens out the flow within a window, which moves as a whole
LARGEST_JUMP = 1.0  # px: where evening out would change the flow by more there is an edge, and it stays as it is
LARGEST_STEP = 1.0  # px, of an iteration
LARGEST_SHIFT = 3.0  # px, of all together: beyond it the flow was wrong, which is not for this to mend
LIKELY = 0.03  # P_1 of cells that are worth the time
MARGIN = 8  # cells around them
INDEPENDENT = 30  # pixels of a window whose noise counts as independent, for the variance of its place
ROUGHNESS = 4  # variance per squared pixel that a cell lies off its neighbours: their errors differ, their flow does not
SURROUNDINGS = (2.5, 7.0)  # cells: of the Gaussians over which a judge sees how sure the neighbours are


def grey(images: Tensor, size: tuple[int, int]) -> Tensor:
    """RGB (B, 3, H, W) -> (B, 1, height, width), as the full-resolution branch of the network sees them."""
    weights = images.new_tensor((0.299, 0.587, 0.114)).view(1, 3, 1, 1)
    return resize_area((images * weights).sum(1, keepdim=True), size)


def align_likely(output: LevelOutput, reference: Tensor, query: Tensor, judge: Judge | None = None) -> LevelOutput:
    """As `align`, of the part around all cells that may be matches: often half of the image, and nothing of unrelated ones.

    Each pair of a batch has a part of its own, so that its result does not depend on the others.
    """
    likely = p_r(output.log_var.float(), output.logits.float())[:, 0] > LIKELY
    stride = reference.shape[-1] // output.flow.shape[-1]
    flow, log_var, logits = (x.float().clone() for x in (output.flow, output.log_var, output.logits))
    for n in range(len(likely)):
        if not likely[n].any():
            continue
        rows, columns = (_range(likely[n].any(side)) for side in (1, 0))
        y, x = (slice(stride * side.start, stride * side.stop) for side in (rows, columns))
        corner = flow.new_tensor((x.start, y.start)).view(2, 1, 1)
        cells, one = (n, ..., rows, columns), slice(n, n + 1)
        part = replace(
            output, flow=(flow[cells] + corner)[None], log_var=log_var[cells][None], logits=logits[cells][None]
        )
        part = align(part, reference[one, :, y, x], query[one], judge)
        flow[cells], log_var[cells], logits[cells] = part.flow[0] - corner, part.log_var[0], part.logits[0]
    return replace(output, flow=flow, log_var=log_var, logits=logits)


def _range(wanted: Tensor) -> slice:
    """From the first to the last True, and as much more as the widest window reaches."""
    places = wanted.nonzero()[:, 0]
    return slice(max(int(places[0]) - MARGIN, 0), min(int(places[-1]) + 1 + MARGIN, len(wanted)))


def align(output: LevelOutput, reference: Tensor, query: Tensor, judge: Judge | None = None) -> LevelOutput:
    """The estimate with its flow moved to where the grey images (B, 1, H, W) of the two branches fit best.

    How well they tell the place (a plain wall does not) is known from the fit, and from how far neighbours lie apart: the
    variance of the narrowest component grows by it, up to 1, so that confidence orders matches of which the network is
    equally sure. A `judge` weighs all this, and says how likely each cell is right.
    """
    found, evidence = align_with_evidence(output, reference, query)
    if judge is None:
        return found
    log_var, logits = mixture_stating(stated(judge(evidence)), found.log_var)
    return replace(found, log_var=log_var, logits=logits)


def align_with_evidence(output: LevelOutput, reference: Tensor, query: Tensor) -> tuple[LevelOutput, Tensor | None]:
    """The aligned estimate, and what is known of each cell, (B, EVIDENCE, h, w); None if the network states no confidence."""
    size = reference.shape[-2:]
    stride = size[-1] // output.flow.shape[-1]
    flow = start = output.flow.float()
    query_per_reference = _jacobian(flow, stride)
    reference = _normalised(reference, torch.ones_like(reference), stride)
    query = torch.cat((query, torch.ones_like(query)), 1)
    for sigma in WINDOWS:
        flow = _smoothed(flow)
        warped, seen = warp(query, resize(flow, size)).split(1, 1)
        warped = _normalised(warped, seen, stride)
        residual = reference - warped
        weight = (residual / ROBUST).square_().add_(1).rsqrt_().mul_(seen)
        step, looseness = _step(_gradient((reference + warped).div_(2)), residual, weight, sigma, stride)
        step = torch.einsum("bhwij,bjhw->bihw", query_per_reference, step)
        flow = start + _limited(flow + step - start, LARGEST_SHIFT)
    noise, total = _window_means((weight * residual.square(), weight), sigma, stride).split(1, 1)
    noise = noise / total.clamp(min=1e-3)
    bend = _length(flow - _evened_out(flow))
    roughness = bend * (bend < LARGEST_JUMP)
    variance = noise * looseness / INDEPENDENT + ROUGHNESS * roughness.square()
    found = replace(output, flow=flow, log_var=_widened(output.log_var, variance))
    if output.log_var is None:
        return found, None
    fit = (noise.clamp(min=3e-4).log(), looseness.log().clamp(max=7), roughness.clamp(min=1e-4).log())
    shape = (bend.clamp(min=1e-3).log(), F.max_pool2d(bend, 5, 1, 2).clamp(min=1e-3).log(), _zooms(query_per_reference))
    return found, torch.cat((_confidences(output, found), *fit, *shape), 1)


def _confidences(output: LevelOutput, aligned: LevelOutput) -> Tensor:
    """(B, 5, h, w): what the network says, what is left of it after alignment, and how sure the surroundings are."""
    p1 = p_r(aligned.log_var.float(), aligned.logits.float())
    odds = torch.logit((p1 / HIGHEST).clamp(1e-4, 1 - 1e-4))
    around = [_means(odds, sigma) / _means(torch.ones_like(odds), sigma) for sigma in SURROUNDINGS]
    return torch.cat((output.logits[:, :1] - output.logits[:, 1:2], output.log_var[:, -1:], odds, *around), 1).float()


def _zooms(jacobian: Tensor) -> Tensor:
    """(B, h, w, 2, 2) -> logarithms of the least and the largest magnification (B, 2, h, w)."""
    (a, b), (c, d) = (row.unbind(-1) for row in jacobian.unbind(-2))
    total = (a * a + b * b + c * c + d * d) / 2
    spread = ((a * d - b * c).square() - total.square()).neg().clamp(min=0).sqrt()
    return torch.stack((total - spread, total + spread), 1).clamp(min=1e-12).log() / 2


def _widened(log_var: Tensor | None, variance: Tensor) -> Tensor | None:
    """Log-variances (B, M, h, w), the first component's increased by a variance (B, 1, h, w), and by no more than 1."""
    if log_var is None:
        return None
    first = (log_var[:, :1].float().exp() + variance / (1 + variance)).log()
    return torch.cat((first, log_var[:, 1:]), 1)


def _step(
    gradient: tuple[Tensor, Tensor], residual: Tensor, weight: Tensor, sigma: float, stride: int
) -> tuple[Tensor, Tensor]:
    """The shift (B, 2, h, w) in pixels of the reference that lowers the residuals around each cell most.

    And how loosely the texture holds it (B, 1, h, w): its variance if that of the residuals were 1.
    """
    x, y = gradient
    weighted_x, weighted_y = x * weight, y * weight
    products = (weighted_x * x, weighted_x * y, weighted_y * y, weighted_x * residual, weighted_y * residual)
    xx, xy, yy, xr, yr = _window_means(products, sigma, stride).split(1, 1)
    xx, yy = xx + STIFFNESS, yy + STIFFNESS
    determinant = xx * yy - xy * xy
    step = torch.cat((yy * xr - xy * yr, xx * yr - xy * xr), 1) / determinant
    return _limited(step, LARGEST_STEP), (xx + yy) / determinant


def _smoothed(flow: Tensor) -> Tensor:
    """The flow evened out over neighbouring cells, except at edges."""
    evened = _evened_out(flow)
    return torch.where(_length(evened - flow) < LARGEST_JUMP, evened, flow)


def _evened_out(flow: Tensor) -> Tensor:
    """Means over neighbouring cells. Linear flow, up to the border, stays the same."""
    reach = min(round(2 * SMOOTHING), min(flow.shape[-2:]) - 1)
    places = torch.arange(-reach, reach + 1, dtype=flow.dtype, device=flow.device)
    kernel = torch.exp(-0.5 * (places / SMOOTHING).square())
    kernel = kernel / kernel.sum()
    pad = (reach,) * 4
    x = 2 * F.pad(flow, pad, mode="replicate") - F.pad(flow, pad, mode="reflect")
    x = x.flatten(0, 1)[:, None]
    return F.conv2d(F.conv2d(x, kernel.view(1, 1, -1, 1)), kernel.view(1, 1, 1, -1)).view_as(flow)


def _limited(vectors: Tensor, longest: float) -> Tensor:
    return vectors / (_length(vectors) / longest).clamp(min=1)


def _length(vectors: Tensor) -> Tensor:
    """(B, 2, h, w) -> (B, 1, h, w)."""
    return torch.hypot(vectors[:, :1], vectors[:, 1:])


def _jacobian(flow: Tensor, stride: int) -> Tensor:
    """(B, h, w, 2, 2): how far the query point moves per pixel of the reference, from the flow smoothed over cells."""
    smooth = F.avg_pool2d(F.pad(flow, (2, 2, 2, 2), mode="replicate"), 3, 1)  # a cell more on each side
    along_x = (smooth[..., 1:-1, 2:] - smooth[..., 1:-1, :-2]) / (2 * stride)
    along_y = (smooth[..., 2:, 1:-1] - smooth[..., :-2, 1:-1]) / (2 * stride)
    derivative = torch.stack((along_x, along_y), -1).permute(0, 2, 3, 1, 4)
    return derivative + torch.eye(2, dtype=flow.dtype, device=flow.device)


def _gradient(image: Tensor) -> tuple[Tensor, Tensor]:
    """Along x and along y, central differences: (B, 1, H, W) each."""
    x = F.pad(image, (1, 1, 0, 0), mode="replicate")
    y = F.pad(image, (0, 0, 1, 1), mode="replicate")
    return (x[..., 2:] - x[..., :-2]).div_(2), (y[..., 2:, :] - y[..., :-2, :]).div_(2)


def _normalised(image: Tensor, seen: Tensor, stride: int) -> Tensor:
    """The image with local mean 0 and local standard deviation 1; where it is not seen (`seen` 0), it is 0."""
    moments = _window_means((image, image.square(), seen), NEIGHBOURHOOD, stride)
    mean, square = (moments[:, :2] / moments[:, 2:].clamp(min=1e-3)).split(1, 1)
    scale = ((square - mean.square()).clamp(min=0) + LEAST_CONTRAST**2).rsqrt()
    mean, scale = (resize(x, image.shape[-2:]) for x in (mean, scale))
    return (image - mean * seen).mul_(scale)


def _window_means(maps: Sequence[Tensor], sigma: float, stride: int) -> Tensor:
    """Maps (B, 1, H, W) -> (B, C, H/stride, W/stride): means around each cell under a Gaussian of steps a cell wide.

    Outside the image all is zero. Cells first: what is left is small.
    """
    return _means(torch.cat([F.avg_pool2d(x, stride) for x in maps], 1), sigma / stride)


def _means(cells: Tensor, sigma: float) -> Tensor:
    """Means of cells (B, C, h, w) under a Gaussian, in cells; outside all is zero."""
    rows, columns = (_windows(side, sigma, like=cells) for side in cells.shape[-2:])
    return rows @ cells @ columns.T


def _windows(side: int, sigma: float, like: Tensor) -> Tensor:
    """(side, side): weights of the cells of a row for each of its cells; further off than 3.5 sigma, none."""
    places = torch.arange(side, dtype=like.dtype, device=like.device)
    distance = ((places - places[:, None]) / sigma).square()
    near = distance < 12  # weights further off are next to nothing, and denormal numbers would take all the time
    weights = torch.exp(-0.5 * distance.clamp(max=12)) * near
    return weights / (sigma * (2 * torch.pi) ** 0.5)
