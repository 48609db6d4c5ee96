"""The inputs of a confidence head for each cell: the network's confidence, the alignment, the confidence around it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pdc_sfm.dense.cells import means
from pdc_sfm.network import LevelOutput
from pdc_sfm.network.mixture import highest_p_r, p_r
from pdc_sfm.network.settings import MixtureSettings

# A head is fitted to these numbers as they are: others want another head (`pdc-sfm train calibrate`). Limits stand for what
# has no number: cells that the query does not show (no residuals, looseness without bound) and edges (no roughness). Bend and
# magnification reach theirs in less than .2 % of the cells. Magnifications are squared, hence the half.
FIT = (  # of the numbers that the fit gives: least, largest, and by what the logarithm is multiplied
    (3e-4, math.inf, 1.0),  # variance of the residuals
    (0.0, math.exp(7), 1.0),  # looseness
    (1e-4, math.inf, 1.0),  # roughness
    (1e-3, math.inf, 1.0),  # bend
    (1e-3, math.inf, 1.0),  # of the cells around
    (1e-12, math.inf, 0.5),  # least magnification, squared
    (1e-12, math.inf, 0.5),  # largest
)
HIGHEST_P_1 = highest_p_r(MixtureSettings())  # a confidence feature is how near P_1 comes to it
SURROUNDINGS = (2.5, 7.0)  # cells: of the Gaussians over which a confidence head sees how sure the neighbors are


def confidences(output: LevelOutput, aligned: LevelOutput) -> tuple[Tensor, ...]:
    """Five maps (B, n, h, w): what the network says, what is left of it after alignment, and how sure the surroundings are."""
    assert output.log_var is not None  # else there is no confidence to speak of
    assert output.logits is not None
    odds = torch.logit(p_r(aligned.log_var, aligned.logits, unit=HIGHEST_P_1), eps=1e-4)
    around = means(odds, SURROUNDINGS)
    return output.logits[:, :1] - output.logits[:, 1:2], output.log_var[:, -1:], odds, around


def squared_zooms(jacobian: Tensor) -> tuple[Tensor, Tensor]:
    """(B, 2, 2, h, w) -> squares of the least and the largest magnification (B, 1, h, w)."""
    (a, b), (c, d) = (row.split(1, 1) for row in jacobian.flatten(1, 2).split(2, 1))
    total = jacobian.square().sum((1, 2)).unsqueeze(1) / 2
    determinant = torch.addcmul(a * d, b, c, value=-1)
    range_ = torch.addcmul(total * total, determinant, determinant, value=-1).clamp_(min=0).sqrt_()
    return total - range_, total + range_
