"""What `evaluate homographies` prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.evaluation.measures.calibration import reliability_table
from pdc_sfm.evaluation.measures.dense_scores import COSTS, RANKINGS, DenseScores
from pdc_sfm.evaluation.measures.match_scores import SOUND
from pdc_sfm.evaluation.plots import plot_calibration, plot_sparsification
from pdc_sfm.evaluation.runs.homographies import HomographyResult
from pdc_sfm.evaluation.tables import number, percent, table, write_json
from pdc_sfm.files import write_text
from pdc_sfm.images import write_image
from pdc_sfm.pair_picture import pair_picture
from pdc_sfm.settings import to_dict


def summarize(result: HomographyResult, settings: Any, weights: str) -> dict[str, Any]:
    """Every figure, as plain numbers."""
    dense = {kind: found.dense.summary() for kind, found in result.kinds.items()}
    if len(dense) > 1:
        dense["all"] = DenseScores.union([found.dense for found in result.kinds.values()]).summary()
    matches = {
        kind: {"ours": found.ours.summary(), "sift": found.sift.summary()} for kind, found in result.kinds.items()
    }
    unrelated = {
        "pairs": len(result.unrelated_matches),
        "confident": _mean(result.unrelated_confident),
        "matches": _mean(result.unrelated_matches),
        "sift_matches": _mean(result.unrelated_sift),
    }
    return {
        "weights": weights,
        "settings": to_dict(settings),
        "dense": dense,
        "matches": matches,
        "unrelated": unrelated,
    }


def text(summary: dict[str, Any]) -> str:
    """The tables."""
    parts = [dense_table(summary["dense"]), _ause_table(summary["dense"]), match_table(summary["matches"])]
    whole = list(summary["dense"].values())[-1]
    if "calibration" in whole:
        parts.append(reliability_table({list(summary["dense"])[-1]: whole}))
    unrelated = summary["unrelated"]
    if unrelated["pairs"]:
        parts.append(
            f"Unrelated photographs ({unrelated['pairs']} pairs): {percent(unrelated['confident'], 2)} % of pixels confident, "
            f"{number(unrelated['matches'], 0)} matches a pair (SIFT {number(unrelated['sift_matches'], 0)}); right would be 0"
        )
    return "\n\n".join(parts)


def write_results(folder: Path, result: HomographyResult, summary: dict[str, Any]) -> list[Path]:
    """JSON, text, plots, and a picture of the first pair of each kind."""
    whole = DenseScores.union([found.dense for found in result.kinds.values()])
    write_json(folder / "results.json", summary)
    write_text(folder / "results.txt", text(summary) + "\n")
    plot_sparsification(whole.mean_curves(), folder / "sparsification.png", "Sparsification, all kinds")
    written = [folder / "results.json", folder / "sparsification.png"]
    if whole.kept:
        plot_calibration(whole.calibration, folder / "calibration.png", "Calibration, all kinds")
        written.append(folder / "calibration.png")
        for kind, found in result.kinds.items():
            if found.example is not None:
                pair, matches, forward = found.example
                picture = pair_picture(pair.reference, pair.query, matches, forward)
                write_image(folder / "pairs" / f"{kind.replace(' ', '_')}.jpg", picture)
        written.append(folder / "pairs")
    return written


def dense_table(dense: dict[str, Any]) -> str:
    """AEPE, PCK and confidence of each kind of pairs."""
    rows = [
        [
            kind,
            str(d["pairs"]),
            number(d["aepe"]),
            *(percent(d[f"pck_{t}_per_image"]) for t in (1, 3, 5)),
            percent(d.get("kept")),
            percent(d.get("kept_pck_5")),
            number(d.get("calibration_error"), 3),
        ]
        for kind, d in dense.items()
    ]
    head = ["kind", "pairs", "AEPE", "PCK-1", "PCK-3", "PCK-5", "conf>0.1", "PCK-5 there", "ECE"]
    return table(head, rows, "Dense flow, over all pixels that both images show (px and %)")


def _ause_table(dense: dict[str, Any]) -> str:
    head = ["kind", *(f"{cost} {ranking}" for cost in COSTS for ranking in RANKINGS)]
    rows = [
        [kind, *(number(d["ause"][cost].get(ranking), 3) for cost in COSTS for ranking in RANKINGS)]
        for kind, d in dense.items()
    ]
    return table(head, rows, "AUSE: how far each ranking is from the oracle (lower is better)")


def match_table(matches: dict[str, Any]) -> str:
    """Matches and homographies of each kind, ours and SIFT's."""
    head = [
        "kind",
        *(f"{who}{what}" for what in ("matches", "<=1 px", "<=5 px", f"H<={SOUND:g} px") for who in ("", "SIFT ")),
    ]
    rows = []
    for kind, both in matches.items():
        row = [kind]
        for name in ("matches", "within_1", "within_5", "homography_found"):
            for who in ("ours", "sift"):
                value = both[who][name]
                row.append(number(value, 0) if name == "matches" else percent(value))
        rows.append(row)
    return table(
        head,
        rows,
        "Matches compared with SIFT (ratio test, mutual): how many, how many right (%), homography found (%)",
    )


def _mean(values: list) -> float:
    return float(np.mean(values)) if values else float("nan")
