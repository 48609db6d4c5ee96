"""Is a stated probability true? P_R says how often |error|_inf < R; this counts how often it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

BINS = 10


@dataclass
class Calibration:
    """Tenths of the range of P_R: pixels, sum of stated probabilities, and how many were within R."""

    highest: float  # P_R cannot exceed this (`highest_p_r`)
    sums: np.ndarray = field(default_factory=lambda: np.zeros((BINS, 3)))

    def add(self, stated: np.ndarray, within: np.ndarray) -> None:
        """P_R (N,) and whether the largest component of the error was below R, in pixels of the network's input."""
        stated = np.asarray(stated, np.float64)
        tenth = np.clip((stated / self.highest * BINS).astype(int), 0, BINS - 1)
        for column, weight in enumerate((np.ones_like(stated), stated, np.asarray(within, np.float64))):
            self.sums[:, column] += np.bincount(tenth, weight, minlength=BINS)

    def rows(self) -> list[dict[str, float]]:
        """For each tenth: its bounds, the share of pixels in it, the mean of P_R, the share that was within R."""
        edges = np.linspace(0, self.highest, BINS + 1)
        total = max(self.sums[:, 0].sum(), 1)
        rows = []
        for low, high, (pixels, stated, within) in zip(edges, edges[1:], self.sums):
            mean = (stated / pixels, within / pixels) if pixels else (float("nan"), float("nan"))
            row = {"from": low, "to": high, "pixels": pixels / total, "stated": mean[0], "observed": mean[1]}
            rows.append({name: float(value) for name, value in row.items()})
        return rows

    @property
    def gap(self) -> float:
        """The expected calibration error: |stated - observed|, averaged over all pixels."""
        return float(np.abs(self.sums[:, 1] - self.sums[:, 2]).sum() / max(self.sums[:, 0].sum(), 1))
