"""Selects the cells of a batch that are matches on the device, so that one copy brings them to the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.dense.cells import on_device
from pdc_sfm.dense.estimate import cell_centers
from pdc_sfm.dense.field import Field, cyclic_error
from pdc_sfm.matches.select import SelectSettings, scaled_distance
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size

NONE = -1.0  # the score of what is no match


def pack(forward: Field, backward: Field | None, settings: SelectSettings) -> Tensor:
    """(B, 3, h, w): where each cell lies in the query, x and y in original pixels, and its score; -1 if it is no match."""
    if settings.needs_cycle:
        assert backward is not None  # `needs_both` says so
        distance = scaled_distance(settings.cyclic_distance, forward.reference_size)
        error = cyclic_error(forward, backward)  # infinite where it is not valid
        keep = error < distance
    else:
        keep = forward.valid > 0
    if settings.confidence == "probability":
        confidence = forward.confidence_within(settings.radius)
        scores = F.threshold(confidence, settings.threshold, NONE)
    else:
        scores = 1 - error / distance
    none = on_device((NONE,), scores.device)
    block = max(1, settings.stride // forward.stride)
    if block > 1:
        keep = keep & best_of_blocks(torch.where(keep, scores, none), block)
    packed = scores.new_empty((len(scores), 3, *scores.shape[-2:]))
    forward.query_points(out=packed[:, :2])
    torch.where(keep, scores, none, out=packed[:, 2:])
    return packed


def best_of_blocks(scores: Tensor, block: int) -> Tensor:
    """Mask (B, 1, h, w) with the best cell of each block x block square; of equals the first."""
    _, places = F.max_pool2d(scores, block, ceil_mode=True, return_indices=True)
    mask = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    return mask.flatten(2).scatter_(2, places.flatten(2), True).view_as(mask)


def fetch(packed: Tensor) -> Callable[[], np.ndarray]:
    """Begin to copy to the host, and go on: the array is waited for when it is asked for."""
    if packed.device.type != "cuda":
        return packed.cpu().numpy
    host = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True).copy_(packed, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record()

    def array() -> np.ndarray:
        arrived.synchronize()
        return host.numpy()

    return array


def unpack(packed: np.ndarray, reference_size: Size) -> RawMatches:
    """The matches of one direction (3, h, w), reference first."""
    height, width = packed.shape[1:]
    x, y, scores = packed.reshape(3, -1)
    kept = np.flatnonzero(scores >= 0)
    centers = cell_centers((width, height), tuple(reference_size)).reshape(-1, 2)
    query = np.empty((len(kept), 2), np.float32)
    query[:, 0], query[:, 1] = x.take(kept), y.take(kept)
    return RawMatches(centers.take(kept, 0), query, scores.take(kept))
