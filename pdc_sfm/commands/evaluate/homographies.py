"""Evaluate a network on synthetic pairs of any folder of photographs, with exact ground truth; no dataset is needed.

Kinds: viewpoint, zoom, blur, light, night, compression, rotation, strong zoom, and pairs of unrelated photographs. Prints
AEPE and PCK, the share with confidence > 0.1 and its accuracy, AUSE of three rankings, the calibration of confidence, and
a comparison with SIFT. Writes results.json, plots, and a picture of the first pair of each kind.

Example:
  pdc-sfm evaluate homographies --images photos/ --count 5 dense.method=homography
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.evaluate.network import add_network, load_network, network_name
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", type=Path, required=True, help="folder of photographs, subfolders included")
    parser.add_argument("--held-out", action="store_true", help="only the photographs that training leaves out (3 %%)")
    parser.add_argument("--count", type=int, help="pairs per kind; the same as count=N")
    add_network(parser, "pdc_sfm.evaluation.runs.homographies:HomographySettings", "outputs/evaluate/homographies")
    parser.set_defaults(paths=Paths(images=("images",), inputs=("weights",), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.runs.homographies import HomographySettings, evaluate_homographies
    from pdc_sfm.evaluation.runs.homography_report import summarize, text, write_results
    from pdc_sfm.settings import load_settings
    from pdc_sfm.synthetic.photographs import open_photographs

    words = [*args.settings, *([f"count={args.count}"] if args.count is not None else [])]
    settings = load_settings(HomographySettings, args.config, words)
    photos = open_photographs(args.images, "validation" if args.held_out else "all")
    matcher = load_network(args, settings)
    total = settings.count * (len(settings.kinds) + (len(photos) > 1))
    with progress(None, "evaluation", "pair", total) as bar:
        result = evaluate_homographies(photos, matcher, settings, lambda kind, _: bar.tell(kind))
    summary = summarize(result, settings, network_name(args))
    print(photos.summary())
    print(text(summary))
    for path in write_results(args.output, result, summary):
        print(path)
