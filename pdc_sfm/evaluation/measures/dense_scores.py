"""All measures of dense estimates against known correspondences, gathered pair by pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdc_sfm.dense.cyclic import cyclic_error_at
from pdc_sfm.dense.estimate import DenseEstimate, PointEstimate
from pdc_sfm.evaluation.measures.calibration import Calibration
from pdc_sfm.evaluation.measures.flow import PCK_THRESHOLDS, FlowTally, pck
from pdc_sfm.evaluation.measures.sparsification import (
    Sparsification,
    aepe_cost,
    mean_sparsification,
    pck_cost,
    sparsification,
)

CONFIDENT = 0.1  # confidence above this is a match (Sec. 3.7)
RANKINGS = ("confidence", "variance", "forward-backward")
COSTS = {"AEPE": aepe_cost, "PCK-5": pck_cost}
LEAST = 100  # pixels a pair must have for a curve


@dataclass
class DenseScores:
    """Scores of one kind of pairs."""

    tally: FlowTally = field(default_factory=FlowTally)
    kept: list[float] = field(default_factory=list)  # share of each pair's pixels with confidence > 0.1
    kept_pck5: list[float] = field(default_factory=list)  # PCK-5 over these
    curves: dict[tuple[str, str], list[Sparsification]] = field(default_factory=dict)  # (cost, ranking)
    calibration: Calibration = field(default_factory=Calibration)

    def add(
        self,
        forward: DenseEstimate,
        backward: DenseEstimate | None,
        reference_points: np.ndarray,
        query_points: np.ndarray,
        *,
        scale: float = 1.0,
        query_seen: float = 1.0,
        group: str = "",
    ) -> None:
        """Judge an estimate at true correspondences (N, 2), original pixels.

        `scale` are the pixels in which errors are given per original query pixel, `query_seen` those of the network.
        """
        if len(reference_points) == 0:
            return
        at = forward.sample(reference_points)
        difference = reference_points + at.flow.astype(np.float64) - query_points
        errors = scale * np.linalg.norm(difference, axis=-1)
        true_flow = scale * (query_points - reference_points)
        self.tally.add(errors, true_flow, group)
        if at.log_var is not None:
            self._add_confidence(at, errors, query_seen * np.abs(difference).max(-1))
        if len(errors) >= LEAST:
            self._add_curves(at, backward, reference_points, errors)

    def _add_confidence(self, at: PointEstimate, errors: np.ndarray, largest: np.ndarray) -> None:
        stated = at.confidence_within(1.0)
        confident = stated > CONFIDENT
        self.kept.append(float(confident.mean()))
        if confident.any():
            self.kept_pck5.append(pck(errors[confident], 5.0))
        self.calibration.add(stated, largest < 1.0)

    def _add_curves(
        self, at: PointEstimate, backward: DenseEstimate | None, points: np.ndarray, errors: np.ndarray
    ) -> None:
        for ranking, uncertainty in uncertainties(at, backward, points).items():
            for name, cost in COSTS.items():
                self.curves.setdefault((name, ranking), []).append(sparsification(cost(errors), uncertainty))

    def mean_curves(self) -> dict[tuple[str, str], Sparsification]:
        """The dataset's curves, by (cost, ranking)."""
        return {key: mean_sparsification(curves) for key, curves in self.curves.items()}

    def summary(self) -> dict[str, Any]:
        """Every figure, for JSON and tables; shares in 0..1."""
        tally = self.tally
        result: dict[str, Any] = {"pairs": len(tally.images), "pixels": tally.pixels, "aepe": tally.aepe()}
        for threshold in PCK_THRESHOLDS:
            result[f"pck_{threshold:g}"] = tally.pck_per_dataset(threshold)
            result[f"pck_{threshold:g}_per_image"] = tally.pck_per_image(threshold)
        if self.kept:
            result["kept"] = float(np.mean(self.kept))
            result["kept_pck_5"] = float(np.mean(self.kept_pck5)) if self.kept_pck5 else float("nan")
            result |= self.calibration.summary()
        result["ause"] = {cost: {} for cost in COSTS}
        for (cost, ranking), curve in self.mean_curves().items():
            result["ause"][cost][ranking] = curve.ause
        return result

    @staticmethod
    def union(scores: list[DenseScores]) -> DenseScores:
        """Several kinds as one."""
        whole = DenseScores()
        for one in scores:
            whole.tally.images += one.tally.images
            whole.kept += one.kept
            whole.kept_pck5 += one.kept_pck5
            whole.calibration.sums += one.calibration.sums
            for key, curves in one.curves.items():
                whole.curves.setdefault(key, []).extend(curves)
        return whole


def uncertainties(at: PointEstimate, backward: DenseEstimate | None, points: np.ndarray) -> dict[str, np.ndarray]:
    """What pixels can be ranked by (Sec. 4.3), higher for less certain: each (N,)."""
    result = {}
    if at.log_var is not None and at.logits is not None:
        result["confidence"] = -at.confidence_within(1.0)
        weights = np.exp(at.logits - at.logits.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        result["variance"] = (weights * np.exp(at.log_var)).sum(-1)  # V = sum of alpha_m sigma_m^2
    if backward is not None:
        result["forward-backward"] = cyclic_error_at(points, points + at.flow, at.valid, backward)
    return result
