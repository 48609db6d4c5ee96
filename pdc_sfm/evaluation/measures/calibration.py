"""Is a stated probability true? Confidence says how often |error|_inf < 1 px; this counts how often it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdc_sfm.evaluation.tables import number, percent, table

BINS = 10  # of equal width, as in the reliability diagrams of Niculescu-Mizil and Caruana 2005


@dataclass
class Calibration:
    """Tenths of probability: how many cells (or pixels, or matches), sum of what was stated, and how many were right."""

    sums: np.ndarray = field(default_factory=lambda: np.zeros((BINS, 3)))

    def add(self, stated: np.ndarray, right: np.ndarray) -> None:
        """Probabilities (N,), and whether that came true: the largest component of the error was below 1 network pixel."""
        stated = np.asarray(stated, np.float64)
        tenth = np.clip((stated * BINS).astype(int), 0, BINS - 1)
        for column, weight in enumerate((np.ones_like(stated), stated, np.asarray(right, np.float64))):
            self.sums[:, column] += np.bincount(tenth, weight, minlength=BINS)

    def rows(self) -> list[dict[str, float]]:
        """For each tenth: its bounds, the share of all that is in it, the mean of what was stated, the share that was right.

        And what a threshold at its lower bound would keep: the share of all, and how much of that was right.
        """
        edges = np.linspace(0, 1, BINS + 1)
        total = max(self.sums[:, 0].sum(), 1)
        rows = []
        above = self.sums[::-1].cumsum(0)[::-1]
        for low, high, (count, stated, right), (kept, _, kept_right) in zip(edges, edges[1:], self.sums, above):
            mean = (stated / count, right / count) if count else (float("nan"), float("nan"))
            row = {"from": low, "to": high, "share": count / total, "stated": mean[0], "true": mean[1]}
            row |= {"kept": kept / total, "kept_true": kept_right / kept if kept else float("nan")}
            rows.append({name: float(value) for name, value in row.items()})
        return rows

    @property
    def error(self) -> float:
        """The expected calibration error: |stated - true|, averaged over all that was counted."""
        return float(np.abs(self.sums[:, 1] - self.sums[:, 2]).sum() / max(self.sums[:, 0].sum(), 1))

    @property
    def excess(self) -> float:
        """The part of it by which too much was stated: all that counts where only the most that can be right is known."""
        return float(np.maximum(self.sums[:, 1] - self.sums[:, 2], 0).sum() / max(self.sums[:, 0].sum(), 1))

    def summary(self) -> dict[str, Any]:
        """For JSON and tables."""
        return {"calibration_error": self.error, "calibration_excess": self.excess, "calibration": self.rows()}


def reliability_table(
    summaries: Mapping[str, Mapping[str, Any]], of: str = "pixels", right: str = "error < 1 px"
) -> str:
    """Stated and true share of each tenth, a row of tenths for each group, and the expected calibration error (ECE).

    The group `pose` knows the most that can be right only: the part of the error is told by which too much was stated.
    """
    rows = []
    for group, summary in summaries.items():
        for row in summary["calibration"]:
            if row["share"] > 0:
                tenth = (number(row["stated"], 3), number(row["true"], 3), percent(row["share"]))
                above = (percent(row["kept"]), number(row["kept_true"], 3))
                rows.append([group, f"{row['from']:.1f}-{row['to']:.1f}", *tenth, *above])
        name, measure = ("too sure", "excess") if group == "pose" else ("ECE", "error")
        rows.append([group, name, "", number(summary[f"calibration_{measure}"], 3)])
    head = ["pairs", "confidence", "stated", right, f"% of {of}", "% from there up", "right of these"]
    return table(head, rows, "Calibration: is the stated probability true?")
