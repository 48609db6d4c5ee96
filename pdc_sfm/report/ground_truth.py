"""Where there is ground truth: is the confidence right? Sparsification and calibration of the shown pairs."""

from __future__ import annotations

import numpy as np

from pdc_sfm.evaluation.measures.dense_scores import COSTS, RANKINGS, DenseScores
from pdc_sfm.report.charts import lines
from pdc_sfm.report.gallery import ShownPair
from pdc_sfm.report.html import Section, table, text
from pdc_sfm.report.run_data import Missing, Run
from pdc_sfm.scenes import SceneTruth

STEP = 2  # every so many pixels are compared


def against_truth(run: Run, shown: list[ShownPair]) -> Section:
    """Errors of the shown pairs' flow by the scene's depth and cameras."""
    if not (run.folder / "depth").is_dir() or not (run.folder / "cameras.json").is_file():
        raise Missing("no depth and cameras of a scene")
    truth = SceneTruth(run.folder)
    scores, rows = DenseScores(), []
    for pair in shown:
        if pair.forward is None or not all(name in truth.cameras for name in pair.names):
            continue
        points, true = _correspondences(truth, pair.names)
        before = len(scores.tally.images)
        scores.add(pair.forward, pair.backward, points, true, query_seen=_seen(pair))
        if len(scores.tally.images) > before:
            rows.append([" – ".join(pair.names), f"{len(points) * STEP**2:,}", *_row(scores)])
    if not rows:
        raise Missing("none of the shown pairs has dense maps and a known truth")
    section = Section("truth", "Confidence against the truth")
    head = ["pair", "visible pixels", "AEPE px", "PCK-1 %", "PCK-5 %"]
    section.content += table(head, rows)
    section.content += f'<div class="grid2">{"".join(_charts(scores))}</div>'
    return section


def _correspondences(truth: SceneTruth, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of the first image that the second sees, on a coarse grid, and where: (N, 2) twice."""
    flow, visible = truth.flow(*names)
    y, x = STEP * np.array(np.nonzero(visible[::STEP, ::STEP]))
    points = np.stack([x, y], -1).astype(np.float64)
    return points, points + flow[y, x]


def _seen(pair: ShownPair) -> float:
    """Pixels of the network's input per original pixel."""
    assert pair.forward is not None
    return pair.forward.stride * pair.forward.grid_size[0] / pair.forward.reference_size[0]


def _row(scores: DenseScores) -> list[str]:
    image = scores.tally.images[-1]
    share = [100 * image.correct[list(scores.tally.thresholds).index(t)] / image.pixels for t in (1.0, 5.0)]
    return [f"{image.error_sum / image.pixels:.2f}", *(f"{s:.1f}" for s in share)]


def _charts(scores: DenseScores) -> list[str]:
    curves, charts = scores.mean_curves(), []
    for cost in COSTS:
        named = {ranking: curves[cost, ranking] for ranking in RANKINGS if (cost, ranking) in curves}
        if not named:
            continue
        drawn = {f"{name} ({c.ause:.3f})": (100 * c.removed[:-1], c.curve[:-1]) for name, c in named.items()}
        oracle = next(iter(named.values()))
        drawn["oracle"] = (100 * oracle.removed[:-1], oracle.oracle[:-1])
        what = "AEPE" if cost == "AEPE" else "1 − PCK-5"
        chart = lines(drawn, "least certain pixels removed (%)", f"{what}, relative", _top(drawn))
        said = f"Sparsification by {what}: the closer to the oracle, the better the ranking (AUSE in brackets)"
        charts.append(f"<figure>{chart}<figcaption>{text(said)}</figcaption></figure>")
    rows = [row for row in scores.calibration.rows() if row["share"] > 0.001]
    if rows:
        stated = [row["stated"] for row in rows]
        both = {"true": (stated, [row["true"] for row in rows]), "exact": ([0.0, 1.0], [0.0, 1.0])}
        chart = lines(both, "stated probability", "true share: error below 1 px", 1.0)
        said = f"Calibration: is the stated probability true? Expected error {scores.calibration.error:.3f}"
        charts.append(f"<figure>{chart}<figcaption>{text(said)}</figcaption></figure>")
    return charts


def _top(drawn: dict) -> float | None:
    """Curves begin at 1; the axis ends there unless one rises."""
    return 1.0 if max(max(y) for _, y in drawn.values()) < 1.02 else None
