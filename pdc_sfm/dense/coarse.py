"""The number of matches that the 256x256 levels expect of a pair, before the fine levels run."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.dense.cells import longest_side, on_device
from pdc_sfm.network import LevelOutput
from pdc_sfm.network.constants import made_once
from pdc_sfm.network.mixture import p_r
from pdc_sfm.network.warp import pixel_grid

RADIUS = 4.0  # R of P_R, in pixels of the branch: half a cell of level 3
AGREEMENT = 8.0  # there and back, in pixels of the branch: a cell of level 3


def mutual_matches(output: LevelOutput) -> Tensor:
    """Of pairs, first all one way and then all back, (2, pairs): how many cells of level 3 are expected to be matches that agree
    both ways.

    A sum of probabilities needs no threshold of confidence. Unrelated images hardly agree by chance: a random way there and back
    ends in its own cell once in 256 times.
    """
    assert output.log_var is not None  # who asks knows that the network predicts them
    assert output.logits is not None
    flow, (height, width) = output.flow, output.query_size
    probability = p_r(output.log_var, output.logits, RADIUS)  # (2 pairs, 1, h, w)
    start = _centers(flow.shape[-2], flow.shape[-1], flow.device, flow.dtype)
    landing = torch.addcmul(start, flow, on_device((2 / width, 2 / height), flow.device)).permute(0, 2, 3, 1)
    turned = flow.roll(len(flow) // 2, 0)
    back = F.grid_sample(turned, landing, mode="nearest", align_corners=False)  # 0 beyond the query: no way back
    agree = longest_side(flow + back) < AGREEMENT
    return (probability * agree).sum((1, 2, 3)).view(2, -1)


@made_once
def _centers(rows: int, columns: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(1, 2, h, w): the centers of cells, -1 and 1 being the borders."""
    like = torch.zeros((), device=device, dtype=dtype)
    size = torch.tensor((columns, rows), device=device, dtype=dtype).view(1, 2, 1, 1)
    return (pixel_grid(rows, columns, like) + 0.5) * 2 / size - 1
