"""How good a network is on fixed pairs: accuracy of the flow, and whether its confidence can be believed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pdc_sfm.network import LevelOutput, PDCNet, mixture, upsample_estimate
from pdc_sfm.settings import require
from pdc_sfm.training.batch import Batch
from pdc_sfm.training.loss import sample_image

CONFIDENT = 0.1  # P_1 above this is a match (Sec. 3.7)
LEAST = 16  # known pixels a pair needs to be evaluated


@dataclass(frozen=True)
class ValidationSettings:
    """The fixed validation pairs, and how often they are evaluated."""

    minutes: float = 15.0  # of training between two validations
    size: int = 384  # side of the images, pixels
    pairs: int = 24  # homographies of moderate strength
    hard: int = 12  # pairs like those of training
    hard_share: float = 0.0  # weight of the hard pairs in the score that selects the best weights
    unrelated: int = 8  # pairs of different photographs
    real: int = 12  # pairs with correspondences, if there are such in training

    def __post_init__(self) -> None:
        require(self.pairs >= 1, "validation.pairs must be at least 1")
        require(0 <= self.hard_share <= 1, "validation.hard_share must lie in [0, 1]")
        require(self.hard > 0 or self.hard_share == 0, "validation.hard_share needs hard pairs: validation.hard")
        require(self.size >= 64, "validation.size must be at least 64")
        require(self.minutes > 0, "validation.minutes must be positive")
        for name in ("hard", "unrelated", "real"):
            require(getattr(self, name) >= 0, f"validation.{name} must be at least 0")


def dense_prediction(level: LevelOutput, batch: Batch) -> tuple[Tensor, Tensor]:
    """Flow in image pixels (B, 2, H, W) and P_1 (B, H, W) at the image's resolution. Without a mixture P_1 is 1."""
    full = upsample_estimate(level, batch.size, batch.query_size)
    if full.logits is None:
        return full.flow, torch.ones_like(full.flow[:, 0])
    return full.flow, mixture.p_r(full.log_var, full.logits, 1.0)[:, 0]


@torch.no_grad()
def validate(network: PDCNet, batches: Iterable[Batch]) -> dict[str, float]:
    """Means over the pairs: pck_1, pck_3, pck_5, aepe over visible pixels; kept and kept_pck_5 over confident ones;
    confident shares of hidden pixels and of unrelated pairs; the worst gap between P_1 and the truth it predicts."""
    before = network.training, network.precision
    network.eval()
    network.precision = None  # as it will be used
    rows: dict[str, list[float]] = {}
    bins = np.zeros((10, 3))  # pixels, sum of P_1, sum of |error|_inf < 1
    for batch in batches:
        flow, confidence = dense_prediction(network(batch.reference, batch.query)[-1], batch)
        for number in range(len(batch)):
            points = batch.points[number] if batch.points else None
            hidden = batch.hidden[number]
            confident = (confidence[number] > CONFIDENT).float()
            if hidden.all():
                _add(rows, "unrelated_confident", confident.mean())
            elif hidden.any():
                _add(rows, "hidden_confident", confident[hidden].mean())
            if points is not None:
                _measure(*_at_points(flow[number], confidence[number], points), rows, bins)
            else:
                seen = batch.valid[number] & ~hidden
                _measure((flow[number] - batch.flow[number])[:, seen], confidence[number][seen], rows, bins)
    training, network.precision = before
    network.train(training)
    result = {name: float(np.mean(values)) for name, values in rows.items()}
    full = bins[:, 0] > 0.01 * max(bins[:, 0].sum(), 1)
    gaps = np.abs(bins[full, 1] - bins[full, 2]) / bins[full, 0]
    result["calibration_gap"] = float(gaps.max()) if full.any() else float("nan")
    result["score"] = float(np.mean([result.get(f"pck_{r}", 0.0) for r in (1, 3, 5)]))
    return result


def _add(rows: dict[str, list[float]], name: str, value: Tensor) -> None:
    rows.setdefault(name, []).append(value.item())


def _at_points(flow: Tensor, confidence: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Errors (2, N) and P_1 (N,) at correspondences (N, 4)."""
    size = tuple(flow.shape[-2:])
    values = sample_image(torch.cat([flow, confidence[None]])[None], points[:, :2].T.reshape(1, 2, 1, -1), size)
    return values[0, :2, 0] - (points[:, 2:] - points[:, :2]).T, values[0, 2, 0]


def _measure(difference: Tensor, stated: Tensor, rows: dict[str, list[float]], bins: np.ndarray) -> None:
    """Add one pair's figures: errors (2, N) of the pixels whose truth is known, and the P_1 (N,) stated there."""
    if len(stated) < LEAST:
        return
    error = difference.square().sum(0).sqrt()
    for radius in (1, 3, 5):
        _add(rows, f"pck_{radius}", (error <= radius).float().mean())
    _add(rows, "aepe", error.mean())
    confident = stated > CONFIDENT
    _add(rows, "kept", confident.float().mean())
    if confident.any():
        _add(rows, "kept_pck_5", (error[confident] <= 5).float().mean())
    right = (difference.abs().amax(0) < 1).double().cpu().numpy()
    probability = stated.double().cpu().numpy()
    which = np.clip((probability * 10).astype(int), 0, 9)
    for column, weight in enumerate((np.ones_like(probability), probability, right)):
        bins[:, column] += np.bincount(which, weight, minlength=10)[:10]
