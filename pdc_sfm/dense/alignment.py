"""Sub-pixel alignment: the network finds the place, the images themselves say where in it, to a fraction of a pixel.

Around each cell of the finest level the window of the query is shifted until it fits the reference's best in the
least-squares sense (Lucas and Kanade 1981). Both are compared after local normalisation of brightness and contrast, so
that light may differ; the query is read through the flow, so that windows may be turned, scaled and bent.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.network import LevelOutput
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


def grey(images: Tensor, size: tuple[int, int]) -> Tensor:
    """RGB (B, 3, H, W) -> (B, 1, height, width), as the full-resolution branch of the network sees them."""
    weights = images.new_tensor((0.299, 0.587, 0.114)).view(1, 3, 1, 1)
    return resize_area((images * weights).sum(1, keepdim=True), size)


def align(output: LevelOutput, reference: Tensor, query: Tensor) -> LevelOutput:
    """The estimate with its flow moved to where the grey images (B, 1, H, W) of the two branches fit best."""
    size = reference.shape[-2:]
    stride = size[-1] // output.flow.shape[-1]
    flow = start = output.flow.float()
    query_per_reference = _jacobian(flow, stride)
    reference = _normalised(reference, torch.ones_like(reference), stride)
    gradient = _gradient(reference)
    query = torch.cat((query, torch.ones_like(query)), 1)
    for sigma in WINDOWS:
        flow = _smoothed(flow)
        warped, seen = warp(query, resize(flow, size)).split(1, 1)
        warped = _normalised(warped, seen, stride)
        step = _step((gradient + _gradient(warped)) / 2, reference - warped, seen, sigma, stride)
        step = torch.einsum("bhwij,bjhw->bihw", query_per_reference, step)
        flow = start + _limited(flow + step - start, LARGEST_SHIFT)
    return replace(output, flow=flow)


def _step(gradient: Tensor, residual: Tensor, seen: Tensor, sigma: float, stride: int) -> Tensor:
    """The shift (B, 2, h, w) in pixels of the reference that lowers the residuals around each cell most."""
    weight = seen * (1 + (residual / ROBUST).square()).rsqrt()
    weighted = weight * gradient
    products = (weighted[:, :1] * gradient, weighted[:, 1:] * gradient[:, 1:], weighted * residual)
    xx, xy, yy, xr, yr = _window_means(torch.cat(products, 1), sigma, stride).split(1, 1)
    xx, yy = xx + STIFFNESS, yy + STIFFNESS
    step = torch.cat((yy * xr - xy * yr, xx * yr - xy * xr), 1) / (xx * yy - xy * xy)
    return _limited(step, LARGEST_STEP)


def _smoothed(flow: Tensor) -> Tensor:
    """The flow evened out over neighbouring cells, except at edges. Linear flow, up to the border, stays the same."""
    reach = min(round(2 * SMOOTHING), min(flow.shape[-2:]) - 1)
    places = torch.arange(-reach, reach + 1, dtype=flow.dtype, device=flow.device)
    kernel = torch.exp(-0.5 * (places / SMOOTHING).square())
    kernel = kernel / kernel.sum()
    pad = (reach,) * 4
    x = 2 * F.pad(flow, pad, mode="replicate") - F.pad(flow, pad, mode="reflect")
    x = x.flatten(0, 1)[:, None]
    x = F.conv2d(F.conv2d(x, kernel.view(1, 1, -1, 1)), kernel.view(1, 1, 1, -1)).view_as(flow)
    return torch.where(_length(x - flow) < LARGEST_JUMP, x, flow)


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


def _gradient(image: Tensor) -> Tensor:
    """(B, 1, H, W) -> (B, 2, H, W), central differences."""
    x = F.pad(image, (1, 1, 0, 0), mode="replicate")
    y = F.pad(image, (0, 0, 1, 1), mode="replicate")
    return torch.cat((x[..., 2:] - x[..., :-2], y[..., 2:, :] - y[..., :-2, :]), 1) / 2


def _normalised(image: Tensor, seen: Tensor, stride: int) -> Tensor:
    """The image with local mean 0 and local standard deviation 1; where it is not seen (`seen` 0), it is 0."""
    moments = _window_means(torch.cat((image, image.square(), seen), 1), NEIGHBOURHOOD, stride)
    moments = moments[:, :2] / moments[:, 2:].clamp(min=1e-3)
    mean, square = resize(moments, image.shape[-2:]).split(1, 1)
    return (image - mean * seen) * ((square - mean.square()).clamp(min=0) + LEAST_CONTRAST**2).rsqrt()


def _window_means(maps: Tensor, sigma: float, stride: int) -> Tensor:
    """(B, C, H, W) -> (B, C, H/stride, W/stride): means under a Gaussian around each cell; outside the image all is zero.

    As matrix products, which take a third of the time of convolutions of single channels.
    """
    rows, columns = (_windows(side, sigma, stride, like=maps) for side in maps.shape[-2:])
    return rows @ maps @ columns.T


def _windows(side: int, sigma: float, stride: int, like: Tensor) -> Tensor:
    """(side/stride, side): weights of the pixels of a row for each of its cells."""
    places = torch.arange(side, dtype=like.dtype, device=like.device)
    centres = (torch.arange(side // stride, dtype=like.dtype, device=like.device) + 0.5) * stride - 0.5
    distance = ((places - centres[:, None]) / sigma).square()
    near = distance < 12  # weights further off are next to nothing, and denormal numbers would take all the time
    weights = torch.exp(-0.5 * distance.clamp(max=12)) * near
    return weights / (sigma * (2 * torch.pi) ** 0.5)
