"""Evaluate a network on the built-in scene, where flow, visibility and poses are known exactly, by day and by night.

Prints the errors of the flow, a comparison of matches with SIFT, and for each tenth of confidence the share within 1
px. A room or an object (`pdc-sfm scene --kind room`) works as well.

Without --scene the scene is rendered first.

Example:
  pdc-sfm evaluate scene --scene outputs/demo
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.evaluate.network import add_network, load_network, write_results
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scene", type=Path, help="folder of a scene, as `pdc-sfm scene` or `pdc-sfm demo` writes it")
    add_network(parser, "pdc_sfm.evaluation.runs.scene_pairs:SceneEvaluationSettings", "outputs/evaluate/scene")
    parser.set_defaults(paths=Paths(inputs=("scene", "weights"), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.measures.calibration import reliability_table
    from pdc_sfm.evaluation.measures.dense_scores import DenseScores
    from pdc_sfm.evaluation.plots import plot_calibration, plot_sparsification
    from pdc_sfm.evaluation.runs.scene_pairs import (
        SceneEvaluationSettings,
        evaluate_scene,
        scene_pairs,
        summarize,
        text,
    )
    from pdc_sfm.files import write_text
    from pdc_sfm.scenes import SceneTruth
    from pdc_sfm.settings import load_settings

    settings = load_settings(SceneEvaluationSettings, args.config, args.settings)
    folder = args.scene or _rendered(args.output / "scene")
    truth = SceneTruth(folder)
    pairs = scene_pairs(truth, settings)
    with progress(None, "evaluation", "pair", len(pairs)) as bar:
        groups = evaluate_scene(truth, pairs, load_network(args, settings), settings, bar.tell)
    summary, whole = summarize(groups), DenseScores.union([scores.dense for scores in groups.values()])
    stated = whole.calibration.summary() if whole.kept else {}
    found = text(summary) + (f"\n\n{reliability_table({'all': stated})}" if stated else "")
    print(found)
    write_text(args.output / "results.txt", found + "\n")
    plot_sparsification(whole.mean_curves(), args.output / "sparsification.png", "The built-in scene")
    if whole.kept:
        plot_calibration(whole.calibration, args.output / "calibration.png", "The built-in scene")
    write_results(args, settings, {"groups": summary, **stated})


def _rendered(folder: Path) -> Path:
    """The scene of the default settings, on all cores, unless it is there."""
    from pdc_sfm.processes import core_count
    from pdc_sfm.scenes import SceneSettings, write_scene

    settings = SceneSettings()
    with progress(None, "scene", "image", settings.total) as bar:
        return write_scene(folder, settings, core_count(), lambda *_: bar.update())
