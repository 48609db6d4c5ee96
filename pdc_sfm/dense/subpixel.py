"""Sub-pixel alignment: the network finds the place, the images themselves say where in it, to a fraction of a pixel.

Around each cell of the finest level the window of the query is shifted until it fits the reference's best in the
least-squares sense (Lucas and Kanade 1981). Both are compared after local normalisation of brightness and contrast, so
that light may differ; the query is read through the flow, so that windows may be turned, scaled and bent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.dense.cells import (
    ALL,
    CELL,
    INNER,
    Window,
    differences,
    evened_out,
    inner_gradient,
    largest,
    means,
    planes,
    spread,
    sums,
)
from pdc_sfm.network import LevelOutput
from pdc_sfm.network.confidence_head import HIGHEST, Judge, mixture_stating, stated
from pdc_sfm.network.mixture import p_r
from pdc_sfm.network.warp import pixel_grid, resize_area

# Windows of the passes (8 and 4.9 px), and the rows and columns of each cell that are looked at: to come near, four pixels
# of sixteen are enough.
PASSES = (((3, 2, 1, 1, 1), INNER), ((2, 1, 1), ALL))
NEIGHBOURHOOD = (1, 1)  # the window that brightness and contrast are measured in, 2.8 px: light differs by place, too
LEAST_CONTRAST = 0.01  # standard deviation of grey values in [0, 1] below which there is only noise
STIFFNESS = 1e-3  # texture it takes to move a cell, in squared gradients of the normalised image
ROBUST = 0.5  # cells whose residuals are above this, in local standard deviations, count less
SMOOTHING = (3, 2, 1)  # the window that evens out the flow (1.9 cells) within one that moves as a whole
LARGEST_JUMP = 1.0  # px: where evening out would change the flow by more there is an edge, and it stays as it is
LARGEST_STEP = 1.5  # px, of a pass
LARGEST_SHIFT = 3.0  # px, of all together: beyond it the flow was wrong, which is not for this to mend
LIKELY = 0.03  # P_1 of cells that are worth the time
MARGIN = 8  # cells around them, and what is aligned begins and ends at multiples of this
INDEPENDENT = 60  # pixels of a window whose noise counts as independent, for the variance of its place
ROUGHNESS = 4  # variance per squared pixel that a cell lies off its neighbours: their errors differ, their flow does not
SURROUNDINGS = (2.5, 7.0)  # cells: of the Gaussians over which a judge sees how sure the neighbours are


@dataclass(frozen=True)
class Grey:
    """What alignment wants of an image, made once: it is the query of some pairs and the reference of others."""

    image: Tensor  # (B, 1, H, W) grey values in [0, 1]
    cells: Tensor  # (B, CELL, CELL, h, w) its planes, normalised

    @staticmethod
    def of(image: Tensor) -> Grey:
        """Of grey values (B, 1, H, W)."""
        cells = planes(image)
        return Grey(image, _normalised(cells, torch.ones_like(cells[:, 0, :1])))

    @property
    def nbytes(self) -> int:
        return self.image.nbytes + self.cells.nbytes


def grey(images: Tensor, size: tuple[int, int]) -> Grey:
    """Of RGB (B, 3, H, W), at a size (height, width): as the full-resolution branch of the network sees them."""
    weights = images.new_tensor((0.299, 0.587, 0.114)).view(1, 3, 1, 1)
    return Grey.of(resize_area((images * weights).sum(1, keepdim=True), size))


def align_likely(
    output: LevelOutput, references: Sequence[Grey], queries: Sequence[Grey], judge: Judge | None = None
) -> LevelOutput:
    """As `align`, of the part around all cells that may be matches: often half of the image, and nothing of unrelated ones.

    Each pair of a batch has a part of its own, so that its result does not depend on the others.
    """
    kept = {name: getattr(output, name) for name in ("flow", "log_var", "logits")}
    maps = {name: _rows(x).clone() for name, x in kept.items() if x is not None}
    flow = maps["flow"]
    likely = p_r(maps["log_var"], maps["logits"])[:, 0] > LIKELY if "logits" in maps else torch.ones_like(flow[:, 0]) > 0
    for n, (reference, query) in enumerate(zip(references, queries)):
        if not likely[n].any():
            continue
        rows, columns = (_range(likely[n].any(side)) for side in (1, 0))
        corner = CELL * flow.new_tensor((columns.start, rows.start)).view(2, 1, 1)
        cells = (n, ..., rows, columns)
        part = replace(output, **{name: x[cells][None] for name, x in maps.items()})
        part = replace(part, flow=part.flow + corner)
        part = align(part, replace(reference, cells=reference.cells[..., rows, columns]), query, judge)
        for name, x in maps.items():
            x[cells] = getattr(part, name)[0]
        flow[cells] -= corner
    return replace(output, **maps)


def _rows(maps: Tensor | None) -> Tensor | None:
    """In float32, one map after the other: the network leaves the numbers of a cell together, which would be slow here."""
    return None if maps is None else maps.float().contiguous()


def _range(wanted: Tensor) -> slice:
    """From the first to the last True, and as much more as the widest window reaches, in steps: few sizes occur."""
    places = wanted.nonzero()[:, 0]
    first, end = int(places[0]) - MARGIN, int(places[-1]) + 1 + MARGIN
    return slice(max(first // MARGIN * MARGIN, 0), min(-(-end // MARGIN) * MARGIN, len(wanted)))


def align(output: LevelOutput, reference: Grey, query: Grey, judge: Judge | None = None) -> LevelOutput:
    """The estimate with its flow moved to where the images of the two branches fit best.

    How well they tell the place (a plain wall does not) is known from the fit, and from how far neighbours lie apart: the
    variance of the narrowest component grows by it, up to 1, so that confidence orders matches of which the network is
    equally sure. A `judge` weighs all this, and says how likely each cell is right.
    """
    found, evidence = align_with_evidence(output, reference, query)
    if judge is None:
        return found
    log_var, logits = mixture_stating(stated(judge(evidence)), found.log_var)
    return replace(found, log_var=log_var, logits=logits)


def align_with_evidence(output: LevelOutput, reference: Grey, query: Grey) -> tuple[LevelOutput, Tensor | None]:
    """The aligned estimate, and what is known of each cell, (B, EVIDENCE, h, w); None if the network states no confidence."""
    output = replace(output, flow=_rows(output.flow), log_var=_rows(output.log_var), logits=_rows(output.logits))
    flow = start = output.flow
    centres = pixel_grid(*flow.shape[-2:], like=flow) * CELL + (CELL - 1) / 2
    query_per_reference = _jacobian(flow)
    slope = inner_gradient(reference.cells)
    for window, taken in PASSES:
        flow = _smoothed(flow)
        warped, seen = _warped(query.image, centres + flow, taken)
        own = reference.cells[:, taken[0] : taken[-1] + 1, taken[0] : taken[-1] + 1]
        residual = own - warped
        if taken == ALL:
            slope = differences(warped.add_(own).mul_(0.25))  # of the mean of both, over two pixels
        step, looseness, noise = _step(slope, residual, seen, window)
        step = (query_per_reference * step[:, None]).sum(2)
        flow = start + _limited(flow + step - start, LARGEST_SHIFT)
    bend = _length(flow - evened_out(flow, SMOOTHING))
    roughness = bend * (bend < LARGEST_JUMP)
    variance = noise * looseness / INDEPENDENT + ROUGHNESS * roughness.square()
    found = replace(output, flow=flow, log_var=_widened(output.log_var, variance))
    if output.log_var is None:
        return found, None
    fit = (noise.clamp(min=3e-4).log(), looseness.log().clamp(max=7), roughness.clamp(min=1e-4).log())
    shape = (bend.clamp(min=1e-3).log(), largest(bend, 2).clamp(min=1e-3).log(), _zooms(query_per_reference))
    return found, torch.cat((_confidences(output, found), *fit, *shape), 1)


def _confidences(output: LevelOutput, aligned: LevelOutput) -> Tensor:
    """(B, 5, h, w): what the network says, what is left of it after alignment, and how sure the surroundings are."""
    p1 = p_r(aligned.log_var, aligned.logits)
    odds = torch.logit((p1 / HIGHEST).clamp(1e-4, 1 - 1e-4))
    around = [means(odds, sigma) for sigma in SURROUNDINGS]
    return torch.cat((output.logits[:, :1] - output.logits[:, 1:2], output.log_var[:, -1:], odds, *around), 1)


def _zooms(jacobian: Tensor) -> Tensor:
    """(B, 2, 2, h, w) -> logarithms of the least and the largest magnification (B, 2, h, w)."""
    (a, b), (c, d) = (row.unbind(1) for row in jacobian.unbind(1))
    total = (a * a + b * b + c * c + d * d) / 2
    range_ = ((a * d - b * c).square() - total.square()).neg().clamp(min=0).sqrt()
    return torch.stack((total - range_, total + range_), 1).clamp(min=1e-12).log() / 2


def _widened(log_var: Tensor | None, variance: Tensor) -> Tensor | None:
    """Log-variances (B, M, h, w), the first component's increased by a variance (B, 1, h, w), and by no more than 1."""
    if log_var is None:
        return None
    first = (log_var[:, :1].exp() + variance / (1 + variance)).log()
    return torch.cat((first, log_var[:, 1:]), 1)


def _warped(query: Tensor, points: Tensor, taken: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The query (B, 1, H, W) where the pixels of cells lie, given its points (B, 2, h, w) of their centres: normalised planes.

    And whether it shows the cell (B, 1, h, w), 1 or 0.
    """
    sides = points.new_tensor((query.shape[-1] - 1, query.shape[-2] - 1)).view(1, 2, 1, 1)
    grid = points * (2 / sides) - 1
    seen = (grid.abs().amax(1, keepdim=True) <= 1).float()
    grid = spread(grid, taken, linear=True)
    read = F.grid_sample(query, grid.flatten(2, 4).permute(0, 2, 3, 1), padding_mode="border", align_corners=True)
    return _normalised(read.view_as(grid[:, 0]), seen, taken), seen


def _normalised(image: Tensor, seen: Tensor, taken: tuple[int, ...] = ALL) -> Tensor:
    """Planes with local mean 0 and local standard deviation 1; cells that are not seen (`seen` 0) do not count."""
    moments = torch.cat((image.mean((1, 2))[:, None], _dot(image, image)), 1)
    moments = sums(torch.cat((moments * seen, seen), 1), NEIGHBOURHOOD)
    mean, square = (moments[:, :2] / moments[:, 2:].clamp(min=1e-3)).split(1, 1)
    scale = ((square - mean.square()).clamp(min=0) + LEAST_CONTRAST**2).rsqrt()
    scale, shift = spread(torch.cat((scale, -mean * scale), 1), taken).unbind(1)
    return torch.addcmul(shift, image, scale)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """The mean product over the pixels of each cell: planes -> (B, 1, h, w)."""
    return (a * b).mean((1, 2))[:, None]


def _step(slope: Sequence[Tensor], residual: Tensor, seen: Tensor, window: Window) -> tuple[Tensor, Tensor, Tensor]:
    """The shift (B, 2, h, w) in pixels of the reference that lowers the residuals around each cell most.

    Then how loosely the texture holds it (B, 1, h, w): its variance if that of the residuals were 1; and that variance.
    """
    x, y = slope
    square = _dot(residual, residual)
    weight = seen * (1 + square / ROBUST**2).rsqrt()
    products = [_dot(a, b) for a, b in ((x, x), (x, y), (y, y), (x, residual), (y, residual))]
    products = torch.cat((*products, square, torch.ones_like(square)), 1)
    xx, xy, yy, xr, yr, square, total = sums(products * weight, window).split(1, 1)
    xx, yy = xx + STIFFNESS, yy + STIFFNESS
    determinant = xx * yy - xy * xy
    step = torch.cat((yy * xr - xy * yr, xx * yr - xy * xr), 1) / determinant
    return _limited(step, LARGEST_STEP), (xx + yy) / determinant, square / total.clamp(min=1e-3)


def _smoothed(flow: Tensor) -> Tensor:
    """The flow evened out over neighbouring cells, except at edges."""
    evened = evened_out(flow, SMOOTHING)
    return torch.where(_length(evened - flow) < LARGEST_JUMP, evened, flow)


def _limited(vectors: Tensor, longest: float) -> Tensor:
    return vectors / (_length(vectors) / longest).clamp(min=1)


def _length(vectors: Tensor) -> Tensor:
    """(B, 2, h, w) -> (B, 1, h, w)."""
    x, y = vectors.split(1, 1)
    return torch.addcmul(x * x, y, y).sqrt_()


def _jacobian(flow: Tensor) -> Tensor:
    """(B, 2, 2, h, w): how far the query point moves per pixel of the reference along x and y, from the smoothed flow."""
    padded = F.pad(flow, (2, 2, 2, 2), mode="replicate")
    rows = padded[..., :-2, :] + padded[..., 1:-1, :] + padded[..., 2:, :]
    smooth = (rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]) / 9  # a cell more on each side
    along_x = (smooth[..., 1:-1, 2:] - smooth[..., 1:-1, :-2]) / (2 * CELL)
    along_y = (smooth[..., 2:, 1:-1] - smooth[..., :-2, 1:-1]) / (2 * CELL)
    still = torch.eye(2, dtype=flow.dtype, device=flow.device).view(1, 2, 2, 1, 1)
    return torch.stack((along_x, along_y), 2) + still
