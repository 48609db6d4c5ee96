"""How good a network is on fixed pairs: accuracy of the flow, and whether its confidence can be believed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from pdc_sfm.network import LevelOutput, mixture, upsample_estimate
from pdc_sfm.settings import require
from pdc_sfm.training.batch import Batch

CONFIDENT = 0.1  # P_1 above this is a match (Sec. 3.7)


@dataclass(frozen=True)
class ValidationSettings:
    """The fixed pairs, and how often they are looked at."""

    minutes: float = 15.0  # of training between two looks
    size: int = 384
    pairs: int = 24  # homographies of moderate strength
    hard: int = 12  # pairs like those of training
    unrelated: int = 8  # pairs of different photographs

    def __post_init__(self) -> None:
        require(self.pairs >= 1, "validation.pairs must be at least 1")
        require(self.size >= 64, "validation.size must be at least 64")
        require(self.minutes > 0, "validation.minutes must be positive")
        require(self.hard >= 0 and self.unrelated >= 0, "validation.hard and validation.unrelated must be at least 0")


def dense_prediction(level: LevelOutput, batch: Batch) -> tuple[Tensor, Tensor]:
    """Flow in image pixels (B, 2, H, W) and P_1 (B, H, W) at the image's resolution. Without a mixture P_1 is 1."""
    full = upsample_estimate(level, batch.size, batch.query_size)
    if full.logits is None:
        return full.flow, torch.ones_like(full.flow[:, 0])
    return full.flow, mixture.p_r(full.log_var, full.logits, 1.0)[:, 0]


@torch.no_grad()
def validate(network: nn.Module, batches: Iterable[Batch]) -> dict[str, float]:
    """Means over the pairs: pck_1, pck_3, pck_5, aepe over visible pixels; kept and kept_pck_5 over confident ones;
    confident shares of hidden pixels and of unrelated pairs; the worst gap between P_1 and the truth it predicts."""
    training = network.training
    network.eval()
    rows: dict[str, list[float]] = {}
    bins = np.zeros((10, 3))  # pixels, sum of P_1, sum of |error|_inf < 1
    for batch in batches:
        level = network(batch.reference, batch.query)[-1]
        flow, confidence = dense_prediction(level, batch)
        for number in range(len(batch)):
            seen = batch.valid[number] & ~batch.hidden[number]
            _measure(flow[number], confidence[number], batch.flow[number], seen, batch.hidden[number], rows, bins)
    network.train(training)
    result = {name: float(np.mean(values)) for name, values in rows.items()}
    full = bins[:, 0] > 0.01 * max(bins[:, 0].sum(), 1)
    gaps = np.abs(bins[full, 1] - bins[full, 2]) / bins[full, 0]
    result["calibration_gap"] = float(gaps.max()) if full.any() else float("nan")
    result["score"] = float(np.mean([result.get(f"pck_{r}", 0.0) for r in (1, 3, 5)]))
    return result


def _measure(flow: Tensor, confidence: Tensor, truth: Tensor, seen: Tensor, hidden: Tensor, rows: dict, bins) -> None:
    """Add one pair's figures."""

    def add(name: str, value: float) -> None:
        rows.setdefault(name, []).append(value)

    confident = confidence > CONFIDENT
    if hidden.all():
        add("unrelated_confident", confident.float().mean().item())
        return
    if hidden.any():
        add("hidden_confident", confident[hidden].float().mean().item())
    if seen.sum() < 64:
        return
    difference = (flow - truth)[:, seen]
    error = difference.square().sum(0).sqrt()
    for radius in (1, 3, 5):
        add(f"pck_{radius}", (error <= radius).float().mean().item())
    add("aepe", error.mean().item())
    add("kept", confident[seen].float().mean().item())
    if confident[seen].any():
        add("kept_pck_5", (error[confident[seen]] <= 5).float().mean().item())
    right = (difference.abs().amax(0) < 1).double().cpu().numpy()
    stated = confidence[seen].double().cpu().numpy()
    which = np.clip((stated / mixture.highest_p_r(1.0) * 10).astype(int), 0, 9)
    for column, weight in enumerate((np.ones_like(stated), stated, right)):
        bins[:, column] += np.bincount(which, weight, minlength=10)[:10]
