"""Making P_1 mean what it says: two numbers, fitted on pairs the network was not trained on, put into its last layer.

The finest level's logits become `scale * logits`, and the first component's also `+ shift`. Nothing depends on them but
the confidence: flow and cost stay the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from pdc_sfm.dense.alignment import align, grey
from pdc_sfm.dense.strategies import aligns
from pdc_sfm.errors import CheckpointError
from pdc_sfm.matches.select import highest_p_r
from pdc_sfm.network import PDCNet, mixture
from pdc_sfm.training.batch import Batch
from pdc_sfm.training.loss import level_ground_truth

FEW = 0.003  # share of the cells below which a step of P_1 says little


@dataclass(frozen=True)
class Observations:
    """What a network said of many cells, and whether it was right."""

    log_var: Tensor  # (N, M)
    logits: Tensor  # (N, M)
    right: Tensor  # (N,) bool: |error|_inf below 1 px, the event P_1 is the probability of (Eq. 7)

    def stated(self, scale: float | Tensor = 1.0, shift: float | Tensor = 0.0) -> Tensor:
        """P_1 (N,) with the logits changed."""
        first = torch.zeros(self.logits.shape[1], dtype=self.logits.dtype)
        first[0] = 1.0
        logits = self.logits * scale + first * shift
        return mixture.p_r(self.log_var[..., None, None], logits[..., None, None], 1.0).reshape(-1)


@torch.no_grad()
def observe(network: PDCNet, batches: Iterable[Batch]) -> Observations:
    """The finest level's statements at visible cells, and whether the flow, aligned as in use, is right there."""
    network.eval()
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for batch in batches:
        level = network(batch.reference, batch.query)[-1]
        if level.logits is None or level.logits.shape[1] < 2:
            raise CheckpointError("only a mixture of two or more components can be calibrated")
        if aligns(network):
            level = align(level, grey(batch.reference, level.reference_size), grey(batch.query, level.query_size))
        target, valid, hidden = level_ground_truth(level, batch, max_jump=6.0)
        seen = valid & ~hidden
        right = (level.flow - target).abs().amax(1) < 1
        parts.append((level.log_var.movedim(1, -1)[seen], level.logits.movedim(1, -1)[seen], right[seen]))
    log_var, logits, right = (torch.cat(column) for column in zip(*parts))
    return Observations(log_var.double(), logits.double(), right)


def fit(seen: Observations) -> tuple[float, float]:
    """Scale and shift after which P_1 and the share of right cells agree best, in every step of P_1 alike.

    No likelihood: most cells are right more often than P_1 can say (0.573), and would drag all others up.
    """
    from scipy.optimize import brute, fmin

    def misfit(parameters: np.ndarray) -> float:
        gaps, counts = _gaps(reliability(seen.stated(math.exp(parameters[0]), parameters[1]), seen.right))
        weights = np.minimum(counts / (FEW * counts.sum()), 1)
        return float((weights * gaps**2).sum() / weights.sum() + 1e-4 * np.square(parameters).sum())

    log_scale, shift = brute(misfit, (slice(-1.5, 1.6, 0.35), slice(-4.1, 4.2, 0.7)), finish=partial(fmin, disp=False))
    return math.exp(log_scale), float(shift)


def _gaps(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stated minus true share of the steps, and their numbers of cells. The last one cannot state more than it does."""
    gaps = table[:, 1] - table[:, 2]
    gaps[-1] = max(gaps[-1], 0.0)
    return gaps, table[:, 0]


@torch.no_grad()
def apply(network: PDCNet, scale: float, shift: float) -> None:
    """Put scale and shift into the finest level's last layer."""
    level = network.levels[str(network.settings.levels[-1])]
    layer, first = getattr(level.predictor, "output", level.predictor), level.constraint.inputs
    layer.weight[first:] *= scale
    layer.bias[first:] *= scale
    layer.bias[first] += shift


def reliability(stated: Tensor, right: Tensor, bins: int = 10) -> np.ndarray:
    """(bins, 3): pixels, mean P_1 and share of right ones, in equal steps of P_1 up to the highest it can take."""
    which = (stated / highest_p_r(1.0) * bins).long().clamp(0, bins - 1).numpy()
    counts = np.bincount(which, minlength=bins)
    sums = [np.bincount(which, weight.double().numpy(), minlength=bins) for weight in (stated, right)]
    return np.stack([counts, *(total / np.maximum(counts, 1) for total in sums)], 1)


def largest_gap(table: np.ndarray) -> float:
    """The largest difference between stated and true share, over steps with more than a few of the cells."""
    gaps, counts = _gaps(table)
    return float(np.abs(gaps[counts >= FEW * counts.sum()]).max())
