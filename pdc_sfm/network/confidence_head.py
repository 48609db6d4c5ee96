"""What an aligned match is worth. The network's own confidence knows nothing of what alignment found out afterwards.

The confidence head weighs all that is known of a cell (`dense.subpixel` gathers it) and says how likely the cell lies less than a
pixel off. It is fitted to pairs with known truth when the network is trained (`pdc-sfm train calibrate`).
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

from pdc_sfm.network.mixture import SQRT2

CONFIDENCE_FEATURES = 12  # numbers known of a cell
HIGHEST = (1 - math.exp(-SQRT2)) ** 2  # P_1 of a component of variance 1: a mixture cannot state more
LITERAL = 0.54  # up to this the confidence head's word is P_1; between it and the highest, what it is surer of keeps its order
HALFWAY = 2.0  # log-odds beyond it that are half the way there
WRONG = (
    7.0  # least log-variance of the other component, which stands for all that is wrong: it adds next to nothing to P_1
)


class ConfidenceHead(nn.Module):
    """Fully connected layers on each cell's evidence."""

    def __init__(self, channels: tuple[int, ...]):
        super().__init__()
        sizes = (CONFIDENCE_FEATURES, *channels, 1)
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [nn.Conv2d(inputs, outputs, 1), nn.LeakyReLU(0.1)]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, evidence: Tensor) -> Tensor:
        """(B, CONFIDENCE_FEATURES, h, w) -> log-odds of being right (B, 1, h, w)."""
        return self.layers(evidence)


def stated(odds: Tensor) -> Tensor:
    """P_1 that a mixture can state for log-odds: the probability itself up to `LITERAL`, then slower, up to `HIGHEST`."""
    surer = (odds - math.log(LITERAL / (1 - LITERAL))).clamp(min=0)
    above = LITERAL + (HIGHEST - LITERAL) * surer / (surer + HALFWAY)
    return torch.where(surer > 0, above, torch.sigmoid(odds))


def mixture_stating(p1: Tensor, log_var: Tensor) -> tuple[Tensor, Tensor]:
    """P_1 (B, 1, h, w), log-variances (B, 2, h, w) -> log-variances and logits of a mixture that states it.

    Its first component has variance 1, the second keeps its own unless that is small.
    """
    wide = log_var[:, 1:].clamp(min=WRONG)
    far = (1 - torch.exp(-SQRT2 * torch.exp(-0.5 * wide))) ** 2
    share = ((p1 - far) / (HIGHEST - far)).clamp(1e-5, 1 - 1e-5)
    log_var = torch.cat((torch.zeros_like(wide), wide), 1)
    return log_var, torch.cat((torch.log(share), torch.log1p(-share)), 1)
