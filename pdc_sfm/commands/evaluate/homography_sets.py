"""Evaluate a network on real photographs of planes with known homographies: Oxford's affine set, HPatches, or your own.

Each subfolder with homographies is a set: images img1, img2 ... with H1to2p ... (Oxford), or 1, 2 ... with H_1_2 ...
(HPatches). The first image is matched with each of the others. Errors are in pixels of images whose smaller side is
dense.min_side (480). Prints PCK, the share with confidence > 0.1 and its accuracy, AUSE, the calibration of confidence
(for each tenth the share within 1 px), and a comparison with SIFT. Rotated and strongly zoomed pairs need
dense.method=search.

Examples:
  pdc-sfm evaluate homography-sets --images oxford/ --sets bikes leuven trees ubc wall
  pdc-sfm evaluate homography-sets --images oxford/ --each dense.method=search
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.evaluate.network import add_network, load_network, network_name
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", type=Path, required=True, help="folder of the sets, or one set")
    parser.add_argument("--sets", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--each", action="store_true", help="a row for every pair, not for every set")
    add_network(parser, "pdc_sfm.matcher:PairSettings", "outputs/evaluate/homography_sets")
    parser.set_defaults(paths=Paths(images=("images",), inputs=("weights",), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.datasets.homography_sets import find_sets
    from pdc_sfm.evaluation.runs.homographies import evaluate_sets
    from pdc_sfm.evaluation.runs.homography_report import summarize, text, write_results
    from pdc_sfm.matcher import PairSettings
    from pdc_sfm.settings import load_settings

    settings = load_settings(PairSettings, args.config, args.settings)
    sets = find_sets(args.images, args.sets)
    matcher = load_network(args, settings)
    with progress(None, "evaluation", "pair", sum(map(len, sets.values()))) as bar:
        result = evaluate_sets(sets, matcher, args.each, bar.tell)
    summary = summarize(result, settings, network_name(args))
    print(text(summary))
    for path in write_results(args.output, result, summary):
        print(path)
