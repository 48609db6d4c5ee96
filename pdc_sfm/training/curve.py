"""The record of a run: two CSV tables that survive a restart, and their picture."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdc_sfm.files import atomic_path


class Table:
    """A CSV file of rows that begin with `iteration`. Reopened at an iteration, rows beyond it are dropped."""

    def __init__(self, path: Path, iteration: int = 0):
        self.path = path
        self.behind = False  # a row could not be written: the next one writes all
        self.rows = [row for row in read_table(path) if row["iteration"] <= iteration]
        if path.exists():
            self._rewrite()

    def add(self, row: Mapping[str, float]) -> None:
        """Append a row; new columns may appear at any time."""
        known = set(self.rows[0]) if self.rows else set()
        self.rows.append(dict(row))
        whole = self.behind or len(self.rows) == 1 or not set(row) <= known
        self.behind = True
        if whole:
            names = list(dict.fromkeys(name for r in self.rows for name in r))
            self.rows = [{name: r.get(name, math.nan) for name in names} for r in self.rows]
            self._rewrite()
        else:
            with open(self.path, "a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow([_text(row.get(name, math.nan)) for name in self.rows[0]])
        self.behind = False

    def _rewrite(self) -> None:
        with atomic_path(self.path) as partial, open(partial, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if self.rows:
                writer.writerow(self.rows[0])
            writer.writerows([_text(value) for value in row.values()] for row in self.rows)


def _text(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def read_table(path: Path) -> list[dict[str, float]]:
    """The rows of a table; a last line cut short by a crash is left out."""
    if not path.exists():
        return []
    rows = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                rows.append({name: float(value) if name != "iteration" else int(value) for name, value in row.items()})
            except (TypeError, ValueError):
                continue
    return rows


def draw_curve(train: list[dict[str, float]], validation: list[dict[str, float]], path: Path) -> None:
    """The loss of the iterations, and the figures of the fixed pairs, over the minutes of training."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    _plot(left, train, [name for name in (train[0] if train else {}) if name.endswith("_nll")])
    left.set(title="Training: likelihood of each level", ylabel="mean -log p per pixel")
    _plot(middle, validation, ["pck_1", "pck_5", "kept", "kept_pck_5", "hard_pck_5", "real_pck_1", "real_pck_5"])
    middle.set(title="Fixed pairs: accuracy", ylim=(0, 1), ylabel="share of visible pixels")
    _plot(right, validation, ["hidden_confident", "unrelated_confident", "calibration_gap"])
    right.set(
        title="Fixed pairs: wrong confidence", ylim=(0, None), ylabel="share of pixels with P$_1$ > 0.1; largest gap"
    )
    for axes in (left, middle, right):
        axes.set_xlabel("minutes of training")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=8)
    with atomic_path(path) as partial:
        figure.savefig(partial, dpi=110, format="png")


def _plot(axes: Any, rows: list[dict[str, float]], names: list[str]) -> None:
    for name in names:
        points = [(row["minutes"], row[name]) for row in rows if math.isfinite(row.get(name, math.nan))]
        if points:
            axes.plot(*zip(*points), label=name.replace("_", " "), marker="." if len(points) < 60 else None)
