"""The number of matches that the 256x256 levels expect of a pair, before the fine levels run."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.dense.cells import longest_side, on_device
from pdc_sfm.network import LevelOutput
from pdc_sfm.network.constants import made_once
from pdc_sfm.network.mixture import p_r
from pdc_sfm.network.warp import pixel_grid

LIKELY = 0.5  # of lying within half a cell


def mutual_matches(output: LevelOutput) -> Tensor:
    """Of pairs, first all one way and then all back, (2, pairs): how many cells are expected to be matches that agree both ways.

    A sum of probabilities needs no threshold of confidence. Unrelated images hardly agree by chance: of level 3 a random way
    there and back ends in its own cell once in 256 times.
    """
    return mutual_probability(output).sum((1, 2)).view(2, -1)


def mutual_probability(output: LevelOutput, masks: Tensor | None = None) -> Tensor:
    """(2 pairs, h, w), first all one way and then all back: the probability that a cell lies within half a cell of where it is
    said to lie, if the way back from there ends within a cell of it; else 0.

    Cells beside the masks (2 pairs, h, w), 0 or 1, are no matches, nor are those that lie beside the mask of the other way.
    """
    assert output.log_var is not None  # who asks knows that the network predicts them
    assert output.logits is not None
    flow, (height, width) = output.flow, output.query_size
    cell = width / flow.shape[-1]  # pixels of the branch, which is square
    probability = p_r(output.log_var, output.logits, cell / 2)[:, 0]  # (2 pairs, h, w)
    start = _centers(flow.shape[-2], flow.shape[-1], flow.device, flow.dtype)
    landing = torch.addcmul(start, flow, on_device((2 / width, 2 / height), flow.device)).permute(0, 2, 3, 1)
    turned = flow.roll(len(flow) // 2, 0)
    back = F.grid_sample(turned, landing, mode="nearest", align_corners=False)  # 0 beyond the query: no way back
    likely = probability * (longest_side(flow + back) < cell)[:, 0]
    if masks is None:
        return likely
    others = masks.roll(len(masks) // 2, 0)[:, None]
    return likely * masks * F.grid_sample(others, landing, mode="nearest", align_corners=False)[:, 0]


def on_host(output: LevelOutput) -> tuple[np.ndarray, np.ndarray]:
    """`mutual_probability` (2 pairs, h, w) and the flow in cells (2 pairs, 2, h, w), in one copy: the host waits for it."""
    likely, cell = mutual_probability(output), output.query_size[1] / output.flow.shape[-1]
    values = torch.cat((likely[:, None], output.flow), 1).cpu().numpy()
    return values[:, 0], values[:, 1:] / cell


def usual_turns(likely: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """Of what `on_host` gives, (2, pairs): degrees by which most likely cells of an image are turned; 0 if none is likely.

    Images are squeezed into squares here: of 4:3 that is an error of a degree and a half at most.
    """
    here = flow[:, :, :-1, :-1]
    across, down = flow[:, :, :-1, 1:] - here, flow[:, :, 1:, :-1] - here  # with a cell more, from neighbor to neighbor
    turns = np.degrees(np.abs(np.arctan2(across[:, 1] - down[:, 0], 2 + across[:, 0] + down[:, 1])))
    sure = likely[:, :-1, :-1] > LIKELY
    usual = [np.median(turn[cells]) if cells.any() else 0.0 for turn, cells in zip(turns, sure)]
    return np.reshape(usual, (2, -1))


@made_once
def _centers(rows: int, columns: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(1, 2, h, w): the centers of cells, -1 and 1 being the borders."""
    like = torch.zeros((), device=device, dtype=dtype)
    size = torch.tensor((columns, rows), device=device, dtype=dtype).view(1, 2, 1, 1)
    return (pixel_grid(rows, columns, like) + 0.5) * 2 / size - 1
