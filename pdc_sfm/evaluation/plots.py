"""Sparsification and calibration as plots (matplotlib, imported when a plot is drawn)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdc_sfm.evaluation.measures.calibration import Calibration
from pdc_sfm.evaluation.measures.dense_scores import COSTS, RANKINGS
from pdc_sfm.evaluation.measures.sparsification import Sparsification
from pdc_sfm.files import atomic_path

COLORS = {"confidence": "#0b6e4f", "variance": "#c8553d", "forward-backward": "#33658a"}
MARKS = {"confidence": "-", "variance": "--", "forward-backward": "-."}


def plot_sparsification(curves: Mapping[tuple[str, str], Sparsification], path: Path, title: str = "") -> None:
    """One panel for each cost: a curve for each ranking, with its AUSE, and the oracle's."""
    figure, axes = _figure(len(COSTS), title)
    for ax, cost in zip(axes, COSTS):
        drawn = {ranking: curves[cost, ranking] for ranking in RANKINGS if (cost, ranking) in curves}
        for ranking, curve in drawn.items():
            label = f"{ranking} ({curve.ause:.3f})"
            ax.plot(
                100 * curve.removed[:-1], curve.curve[:-1], MARKS[ranking], color=COLORS[ranking], label=label, lw=1.8
            )
        if drawn:
            oracle = next(iter(drawn.values()))
            ax.plot(100 * oracle.removed[:-1], oracle.oracle[:-1], ":", color="0.35", label="oracle", lw=1.5)
            ax.legend(frameon=False, fontsize=9, title="ranked by (AUSE)", title_fontsize=9)
        what = "AEPE" if cost == "AEPE" else "1 - PCK-5"
        ax.set(xlabel="least certain pixels removed (%)", ylabel=f"{what}, relative to all pixels", xlim=(0, 100))
        ax.set_ylim(bottom=0)
    _save(figure, path)


def plot_calibration(calibration: Calibration, path: Path, title: str = "") -> None:
    """Stated probability against the share that was within a pixel; the area of a dot is its share of the pixels."""
    figure, (ax,) = _figure(1, title)
    rows = [row for row in calibration.rows() if row["share"] > 0]
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, label="exact")
    sizes = [15 + 600 * row["share"] for row in rows]
    ax.plot([r["stated"] for r in rows], [r["true"] for r in rows], color=COLORS["confidence"], lw=1.2)
    ax.scatter([r["stated"] for r in rows], [r["true"] for r in rows], sizes, COLORS["confidence"], alpha=0.75)
    ax.set(xlabel="stated probability", ylabel="true share: error below 1 px", xlim=(0, 1), ylim=(0, 1))
    ax.legend(frameon=False, fontsize=9)
    _save(figure, path)


def plot_accuracy(curves: Mapping[str, tuple[Any, Any]], path: Path, xlabel: str, ylabel: str, title: str = "") -> None:
    """Accuracy (0..1) over a threshold, one line for each name: name -> (x, y)."""
    figure, (ax,) = _figure(1, title)
    for name, (x, y) in curves.items():
        ax.plot(x, [100 * v for v in y], marker="o", ms=3, lw=1.6, label=name)
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, 100))
    ax.legend(frameon=False, fontsize=9)
    _save(figure, path)


def _figure(panels: int, title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # not pyplot: no window system, no global state

    figure = Figure(figsize=(4.8 * panels, 4.0), layout="constrained", dpi=110)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    with atomic_path(path) as partial:
        figure.savefig(partial, format=path.suffix[1:])
