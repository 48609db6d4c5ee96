"""Sub-pixel alignment: refines the network's matches to a fraction of a pixel by comparing the images.

Around each cell of the finest level the window of the query is shifted until it fits the reference's best in the
least-squares sense (Lucas and Kanade 1981). Both are compared after local normalization of brightness and contrast, so
that light may differ; the query is read through the flow, so that windows may be turned, scaled and bent.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pdc_sfm.dense.cells import (
    ALL,
    CELL,
    INNER,
    Window,
    differences,
    fused,
    inner_gradient,
    largest,
    length,
    longest_side,
    on_device,
    products,
    read_through,
    slopes,
    smooth,
    sums,
)
from pdc_sfm.dense.confidence import head_confidence
from pdc_sfm.dense.confidence_features import FIT, confidences, squared_zooms
from pdc_sfm.dense.gray import Gray, normalized
from pdc_sfm.network import LevelOutput
from pdc_sfm.network.code import MAPS
from pdc_sfm.network.confidence_head import ConfidenceHead
from pdc_sfm.network.mixture import p_r

# Where no other source is named: halved and doubled, the share of places within half a pixel falls or stays (the card of the
# built-in model, "Constants of alignment"; `benchmarks/alignment_constants.py`).
# Windows of the passes (8 and 4.9 px), and the rows and columns of each cell that are looked at: to come near, four pixels
# of sixteen are enough (card, "What was tried").
PASSES = (((3, 2, 1, 1, 1), INNER), ((2, 1, 1), ALL))
STIFFNESS = 1e-3  # texture it takes to move a cell, in squared gradients of the normalized image
ROBUST = 0.5  # cells whose residuals are above this, in local standard deviations, count less
SMOOTHING = (3, 2, 1)  # the window that evens out the flow (1.9 cells) within one that moves as a whole
LARGEST_JUMP = 1.0  # px: where evening out would change the flow by more there is an edge, and it stays as it is
LARGEST_STEP = 1.5  # px, of a pass
LARGEST_SHIFT = 3.0  # px, of all together: beyond it the flow was wrong, which is not for this to mend
LIKELY = 0.03  # P_1 of cells that are worth the time: a third of the lowest threshold in use
MARGIN = 8  # cells around them, four standard deviations of the widest window; what is aligned begins at its multiples
INDEPENDENT = 60  # pixels of a window whose noise counts as independent, of 334 that it weighs: neighbors share theirs
ROUGHNESS = (
    4  # variance per squared pixel that a cell lies off its neighbors, whose errors differ (card, "What was tried")
)


def align_likely(
    output: LevelOutput, references: Sequence[Gray], queries: Sequence[Gray], head: ConfidenceHead | None = None
) -> LevelOutput:
    """As `align`, of the part around all cells that may be matches: often half of the image, and nothing of unrelated ones.

    Each pair of a batch has a part of its own, so that its result does not depend on the others. To know the parts the host
    would have to wait for a GPU, which aligns everything at once.
    """
    if fused(output.flow):
        return align(output, *Gray.cat_both(references, queries), head)
    maps = {name: _rows(x).clone() for name in MAPS if (x := getattr(output, name)) is not None}
    flow, likely = maps["flow"], torch.ones_like(output.flow[:, 0]) > 0
    if output.logits is not None:
        p1 = p_r(maps["log_var"], maps["logits"])
        likely = p1[:, 0] > LIKELY
        if head is not None:
            maps["head_confidence"] = p1  # of cells that are not aligned
    for n, (reference, query) in enumerate(zip(references, queries)):
        if not likely[n].any():
            continue
        rows, columns = (_range(likely[n].any(side)) for side in (1, 0))
        corner = CELL * flow.new_tensor((columns.start, rows.start)).view(2, 1, 1)
        cells = (n, ..., rows, columns)
        part = replace(output, **{name: x[cells][None] for name, x in maps.items()})
        part = replace(part, flow=part.flow + corner)
        part = align(part, replace(reference, cells=reference.cells[..., rows, columns]), query, head)
        for name, x in maps.items():
            x[cells] = getattr(part, name)[0]
        flow[cells] -= corner
    return replace(output, **maps)


def _rows(maps: Tensor) -> Tensor:
    """In float32, one map after the other: the network leaves the numbers of a cell together, which would be slow here."""
    return maps.float().contiguous()


def _range(wanted: Tensor) -> slice:
    """From the first to the last True, and as much more as the widest window reaches, in steps: few sizes occur."""
    places = wanted.nonzero()[:, 0]
    first, end = int(places[0]) - MARGIN, int(places[-1]) + 1 + MARGIN
    return slice(max(first // MARGIN * MARGIN, 0), min(-(-end // MARGIN) * MARGIN, len(wanted)))


def align(output: LevelOutput, reference: Gray, query: Gray, head: ConfidenceHead | None = None) -> LevelOutput:
    """The estimate with its flow moved to where the images of the two branches fit best.

    How well they tell the place (a plain wall does not) is known from the fit, and from how far neighbors lie apart: the
    variance of the narrowest component grows by it, up to 1, so that confidence orders matches of which the network is
    equally sure. A confidence head weighs all this, and says how likely each cell is right.
    """
    found, features = align_with_features(output, reference, query)
    return replace(found, head_confidence=head_confidence(head, features))


def align_with_features(output: LevelOutput, reference: Gray, query: Gray) -> tuple[LevelOutput, Tensor | None]:
    """The aligned estimate, and (B, CONFIDENCE_FEATURES, h, w) known of each cell; None if the network states no confidence."""
    if fused(output.flow):
        from pdc_sfm.dense import subpixel_gpu

        return subpixel_gpu.align_with_features(output, reference, query)
    log_var, logits = (None if maps is None else _rows(maps) for maps in (output.log_var, output.logits))
    output = replace(output, flow=_rows(output.flow), log_var=log_var, logits=logits)
    flow = start = output.flow
    query_per_reference = slopes(flow) + on_device((1.0, 0.0, 0.0, 1.0), flow.device).view(1, 2, 2, 1, 1)
    slope = inner_gradient(reference.cells)
    for window, taken in PASSES:
        flow = _smoothed(flow)
        warped, seen = _warped(query.image, flow, taken)
        own = reference.cells[:, taken[0] : taken[-1] + 1, taken[0] : taken[-1] + 1]
        residual = own - warped
        if taken == ALL:
            slope = differences(warped.add_(own).mul_(0.25))  # of the mean of both, over two pixels
        fit = _fit(slope, residual, seen, window)
        step = _limited(fit.step(), LARGEST_STEP)
        for axis in (0, 1):
            along = query_per_reference[:, :, axis]
            flow = torch.addcmul(flow, along, step[:, axis, None], value=-LARGEST_STEP)
        flow = torch.add(start, _limited(flow - start, LARGEST_SHIFT), alpha=LARGEST_SHIFT)
    looseness, noise = fit.looseness(), fit.noise()
    bend = length(flow - smooth(flow, SMOOTHING))
    roughness = bend * (bend < LARGEST_JUMP)
    variance = torch.addcmul(noise * looseness / INDEPENDENT, roughness, roughness, value=ROUGHNESS)
    found = replace(output, flow=flow, log_var=_widened(output.log_var, variance))
    if output.log_var is None:
        return found, None
    known = torch.cat((noise, looseness, roughness, bend, largest(bend, 2), *squared_zooms(query_per_reference)), 1)
    low, high, scale = (on_device(values, flow.device) for values in zip(*FIT))
    return found, torch.cat((*confidences(output, found), torch.clamp(known, low, high).log() * scale), 1)


def _widened(log_var: Tensor | None, variance: Tensor) -> Tensor | None:
    """Log-variances (B, M, h, w), the first component's increased by a variance (B, 1, h, w), and by no more than 1."""
    if log_var is None:
        return None
    first = (log_var[:, :1].exp() + variance / (1 + variance)).log()
    return torch.cat((first, log_var[:, 1:]), 1)


def _warped(query: Tensor, flow: Tensor, taken: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The query (B, 1, H, W) where the pixels of cells lie, given their flow (B, 2, h, w): normalized planes.

    And whether it shows the cell (B, 1, h, w), 1 or 0.
    """
    height, width = query.shape[-2:]
    scale = on_device((2 / (width - 1), 2 / (height - 1)), flow.device)
    grid = torch.addcmul(places(*flow.shape[-2:], width, height, flow.device), flow, scale)
    seen = (longest_side(grid) <= 1).float()
    return normalized(read_through(query, grid, taken), seen, taken), seen


@functools.lru_cache(32)
def places(rows: int, columns: int, width: int, height: int, device: torch.device) -> Tensor:
    """(1, 2, h, w): where the centers of cells lie on an image of this size without a flow, from -1 to 1."""
    x, y = (
        2 * (torch.arange(n) * CELL + (CELL - 1) / 2) / (side - 1) - 1 for n, side in ((columns, width), (rows, height))
    )
    return torch.stack(torch.meshgrid(x, y, indexing="xy"))[None].to(device)


@dataclass(frozen=True)
class _Fit:
    """The least-squares fit around each cell: weighted sums of products of slopes x and y and of the residual r."""

    sums: Tensor  # (B, 7, h, w): xx, xr, xy, yr, yy, rr, and of the weights

    @functools.cached_property
    def solution(self) -> Tensor:
        """(B, 3, h, w): the step along x times the determinant, minus the determinant, the step along y times it."""
        return torch.linalg.cross(self.sums[:, :3], self.sums[:, 2:5], dim=1)

    def step(self) -> Tensor:
        """The shift (B, 2, h, w) in pixels of the reference that raises the residuals most: the way back lowers them."""
        return self.solution[:, ::2] / self.solution[:, 1:2]

    def looseness(self) -> Tensor:
        """How loosely the texture holds it (B, 1, h, w): its variance if that of the residuals were 1."""
        return (self.sums[:, :1] + self.sums[:, 4:5]) / -self.solution[:, 1:2]

    def noise(self) -> Tensor:
        """The variance of the residuals (B, 1, h, w)."""
        return self.sums[:, 5:6] / self.sums[:, 6:].clamp(min=1e-3)


def _fit(slope: tuple[Tensor, Tensor], residual: Tensor, seen: Tensor, window: Window) -> _Fit:
    xx, xy, yy, xr, yr, square = products(*slope, residual)
    ones = torch.ones_like(square)
    weight = seen * torch.add(ones, square, alpha=1 / ROBUST**2).rsqrt_()
    found = sums(torch.cat((xx, xr, xy, yr, yy, square, ones), 1).mul_(weight), window)
    found[:, 0:5:4] += STIFFNESS
    return _Fit(found)


def _smoothed(flow: Tensor) -> Tensor:
    """The flow evened out over neighboring cells, except at edges."""
    evened = smooth(flow, SMOOTHING)
    return torch.where(length(evened - flow) < LARGEST_JUMP, evened, flow)


def _limited(vectors: Tensor, longest: float) -> Tensor:
    """In units of the longest, which is 1."""
    return vectors / length(vectors).clamp_(min=longest)
