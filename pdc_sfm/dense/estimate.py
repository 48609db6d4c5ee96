"""A dense estimate of one pair: the position of each reference cell in the query, with a confidence."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pdc_sfm.dense.confidence import confidence_array
from pdc_sfm.orientation import UPRIGHT, Orientation
from pdc_sfm.pixels import Size, grid_points, inside, rescale, transform

if TYPE_CHECKING:
    from torch import Tensor

    from pdc_sfm.network import LevelOutput


LOST = 20.0  # a log-variance that leaves no probability to anything within pixels


@dataclass(frozen=True)
class DenseEstimate:
    """Flow from reference to query with its distribution, on a grid of cells over the reference.

    All coordinates are pixel indices of the original images; sigma is in pixels of the network's input.
    """

    flow: np.ndarray  # (h, w, 2) float32: query point minus reference point, at the center of each cell
    log_var: np.ndarray | None  # (h, w, M) float32; None if the network predicts no uncertainty
    logits: np.ndarray | None  # (h, w, M) float32
    valid: np.ndarray  # (h, w) bool: the point lies on the query
    reference_size: Size  # (width, height) of the original images
    query_size: Size
    method: str = "direct"  # how it was obtained
    stride: int = 4  # pixels of the network's input per cell
    head_confidence: np.ndarray | None = None  # (h, w) float32: `confidence` where a confidence head states it

    @property
    def grid_size(self) -> Size:
        """(width, height) of the grid."""
        return self.flow.shape[1], self.flow.shape[0]

    @functools.cached_property
    def reference_points(self) -> np.ndarray:
        """(h, w, 2) float32, centers of the cells."""
        return cell_centers(self.grid_size, tuple(self.reference_size))

    @functools.cached_property
    def query_points(self) -> np.ndarray:
        """(h, w, 2) float32, their positions in the query."""
        return self.reference_points + self.flow

    @functools.cached_property
    def confidence(self) -> np.ndarray:
        """(h, w) float32 in [0, 1]: the probability that the true point is less than a pixel of the network's input off."""
        return self.confidence_within(1.0)

    def confidence_within(self, radius: float) -> np.ndarray:
        """The same for R pixels: P_R (Eq. 7). A confidence head only has it for 1 pixel."""
        return confidence_array(self.head_confidence, self.log_var, self.logits, radius)

    def resampled(self, grid_size: Size) -> DenseEstimate:
        """The same estimate on another grid, for example (width, height) of the reference for one vector per pixel."""
        if tuple(grid_size) == self.grid_size:
            return self
        at = self.sample(grid_points(grid_size, self.reference_size))
        stride = max(1, round(self.stride * self.grid_size[0] / grid_size[0]))
        return replace(self._with(at), stride=stride)

    def over_image(self, image_size: Size, image_from_view: np.ndarray, grid_size: Size) -> DenseEstimate:
        """An estimate whose reference is a view of an image, on a grid over that image: not valid beyond the view."""
        image_points = cell_centers(grid_size, image_size)
        points = transform(image_points, np.linalg.inv(image_from_view))
        points[~np.isfinite(points)] = -1e6  # behind the horizon: beyond any view
        at = self.sample(points)
        flow = (points + at.flow - image_points).astype(np.float32)
        return replace(self._with(at), flow=flow, reference_size=image_size)

    def _with(self, at: PointEstimate) -> DenseEstimate:
        return replace(
            self,
            flow=at.flow,
            log_var=at.log_var,
            logits=at.logits,
            valid=at.valid,
            head_confidence=at.head_confidence,
        )

    def stored(self, reference: Orientation, query: Orientation) -> DenseEstimate:
        """Convert an estimate of upright pictures to stored pixels: exact, without resampling."""
        if reference == query == UPRIGHT:
            return self
        width, height = self.grid_size
        size = reference.stored_size(self.reference_size)
        there = query.stored_points(self.query_points, self.query_size)
        flow = reference.stored(there) - cell_centers(reference.stored_size((width, height)), size)
        maps = {name: getattr(self, name) for name in ("log_var", "logits", "valid", "head_confidence")}
        turned: dict[str, Any] = {
            name: None if x is None else np.ascontiguousarray(reference.stored(x)) for name, x in maps.items()
        }
        return replace(self, flow=flow, reference_size=size, query_size=query.stored_size(self.query_size), **turned)

    def filled_from(self, other: DenseEstimate) -> DenseEstimate:
        """This estimate, and where it is not valid another one of the same grid."""
        names = ["flow"] if self.log_var is None else ["flow", "log_var", "logits"]
        own = self.valid[..., None]
        maps = {name: np.where(own, getattr(self, name), getattr(other, name)) for name in names}
        if self.head_confidence is not None or other.head_confidence is not None:  # one of them may not be aligned
            maps["head_confidence"] = np.where(self.valid, self.confidence, other.confidence)
        return replace(self, **maps, valid=self.valid | other.valid)

    def sample(self, points: np.ndarray) -> PointEstimate:
        """The estimate at reference points (..., 2): flow and mixture parameters are interpolated, as in the network.

        So are a head's probabilities.
        """
        flow, valid = self.flow_at(points)
        cells = rescale(points.astype(np.float64), self.reference_size, self.grid_size)
        corners, weights = _bilinear(self._clipped(cells), self.grid_size)  # the distribution is not extrapolated
        log_var, logits = (
            None if maps is None else _blend(maps, corners, weights) for maps in (self.log_var, self.logits)
        )
        stated = self.head_confidence
        stated = None if stated is None else _blend(stated[..., None], corners, weights)[..., 0]
        return PointEstimate(flow, log_var, logits, valid, stated)

    def flow_at(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The flow (..., 2) at reference points (..., 2), and whether it is valid (...).

        Between the outermost cell centers and the border (1.5 network pixels) the flow goes on linearly: holding it
        there would shift matches by 1.5 (z - 1) pixels under a zoom z.
        """
        cells = rescale(points.astype(np.float64), self.reference_size, self.grid_size)
        flow = _blend(self.flow, *_bilinear(cells, self.grid_size))
        nearest = np.ceil(self._clipped(cells) - 0.5).astype(np.int64)
        valid = self.valid[nearest[..., 1], nearest[..., 0]] & inside(points, self.reference_size)
        return flow, valid & inside(points + flow, self.query_size)

    def _clipped(self, cells: np.ndarray) -> np.ndarray:
        return np.stack([np.clip(cells[..., axis], 0, self.grid_size[axis] - 1) for axis in (0, 1)], -1)


@dataclass(frozen=True)
class PointEstimate:
    """A `DenseEstimate` sampled at points of the reference (...)."""

    flow: np.ndarray  # (..., 2)
    log_var: np.ndarray | None  # (..., M)
    logits: np.ndarray | None
    valid: np.ndarray  # (...)
    head_confidence: np.ndarray | None = None  # (...)

    def confidence_within(self, radius: float = 1.0) -> np.ndarray:
        """At the points, (...), as of a `DenseEstimate`."""
        return confidence_array(self.head_confidence, self.log_var, self.logits, radius)


def from_level(
    output: LevelOutput,
    reference_size: Size,
    query_size: Size,
    *,
    view_size: Size | None = None,
    query_from_view: np.ndarray | None = None,
    index: int = 0,
    method: str = "direct",
) -> DenseEstimate:
    """The network's output for one pair of a batch, in original pixels.

    If the network saw the query through a view (rotated, warped by a homography), `query_from_view` (3, 3) takes pixel
    indices of that view, of `view_size`, to those of the original query: the two are composed exactly.
    """
    flow = _numpy(output.flow, index)
    height, width = flow.shape[:2]
    branch_reference, branch_query = output.reference_size[::-1], output.query_size[::-1]  # now (width, height)
    branch_points = np.add(cell_centers((width, height), branch_reference), flow, dtype=np.float64)
    view_size = view_size or query_size
    points = rescale(branch_points, branch_query, view_size)
    valid = inside(points, view_size)
    if query_from_view is not None:
        points = transform(points, query_from_view)
        valid &= inside(points, query_size)
    flow = (points - cell_centers((width, height), reference_size)).astype(np.float32)
    flow[~np.isfinite(flow)] = 0  # beyond a horizon, which is inside of nothing
    return DenseEstimate(
        flow,
        None if output.log_var is None else _numpy(output.log_var, index),
        None if output.logits is None else _numpy(output.logits, index),
        valid,
        reference_size,
        query_size,
        method,
        round(branch_reference[0] / width),
        None if output.head_confidence is None else _numpy(output.head_confidence, index)[..., 0],
    )


def unmatched(reference_size: Size, query_size: Size, grid_size: Size, components: int, method: str) -> DenseEstimate:
    """An estimate without any match: no point lies in the query, and all confidences are close to zero."""
    shape = grid_size[1], grid_size[0]
    log_var, logits = np.full((*shape, components), LOST, np.float32), np.zeros((*shape, components), np.float32)
    flow, valid = np.zeros((*shape, 2), np.float32), np.zeros(shape, bool)
    return DenseEstimate(flow, log_var, logits, valid, reference_size, query_size, method)


def on_host(output: LevelOutput) -> LevelOutput:
    """The network's output in the host's memory, brought there by one copy."""
    if output.flow.device.type == "cpu":
        return output
    import torch

    from pdc_sfm.network.code import MAPS

    names = [name for name in MAPS if getattr(output, name) is not None]
    maps = [getattr(output, name).detach().float() for name in names]
    parts = torch.cat(maps, 1).cpu().split([x.shape[1] for x in maps], 1)
    return replace(output, **dict(zip(names, parts)))


@functools.lru_cache(16)
def cell_centers(grid_size: Size, image_size: Size) -> np.ndarray:
    """`grid_points`, kept: photographs of one camera have the same, four times a pair."""
    points = grid_points(grid_size, image_size)
    points.setflags(write=False)
    return points


def _numpy(tensor: Tensor, index: int) -> np.ndarray:
    """(B, C, h, w) tensor -> (h, w, C) float32, in memory one map after the other, as most is done to them so."""
    return np.moveaxis(tensor[index].detach().float().contiguous().cpu().numpy(), 0, -1)


def _bilinear(points: np.ndarray, grid_size: Size) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Flat indices and weights, four (...) each, of the grid cells around points (..., 2); linear outside the grid."""
    axes = []
    for axis, cells, step in ((points[..., 1], grid_size[1], grid_size[0]), (points[..., 0], grid_size[0], 1)):
        low = np.clip(np.floor(axis), 0, max(cells - 2, 0))
        t = (axis - low).astype(np.float32)
        low = low.astype(np.int64)
        axes.append(((low * step, 1 - t), (np.minimum(low + 1, cells - 1) * step, t)))
    corners = [(y + x, wy * wx) for y, wy in axes[0] for x, wx in axes[1]]
    return [place for place, _ in corners], [weight for _, weight in corners]


def _blend(grid: np.ndarray, corners: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    """Weighted sum of the cells: (h, w, C) -> (..., C) float32."""
    found = np.empty((*weights[0].shape, grid.shape[-1]), np.float32)
    for channel, cells in enumerate(_maps(grid)):
        found[..., channel] = sum(weight * cells.take(place) for place, weight in zip(corners, weights))
    return found


def _maps(array: np.ndarray) -> np.ndarray:
    """(..., C) -> (C, N), one after the other: taking from them is faster. Not copied if they lie so."""
    return np.ascontiguousarray(np.moveaxis(array, -1, 0), np.float32).reshape(array.shape[-1], -1)
