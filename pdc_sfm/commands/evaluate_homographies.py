"""Judge a network on pairs made from any folder of photographs, with exact ground truth; no dataset is needed.

Kinds: viewpoint, zoom, blur, light, night, compression, rotation, strong zoom, and pairs of unrelated photographs. Printed
are AEPE and PCK, what is kept by confidence > 0.1 and how right that is, AUSE of three rankings, how true confidence is, and
SIFT beside ours; written are results.json, plots, and a picture of the first pair of each kind.

Example:
  pdc-sfm evaluate homographies --images photos/ --count 5 dense.method=homography
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.common import add_device, add_settings
from pdc_sfm.commands.paths import Paths
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", type=Path, required=True, help="folder of photographs, subfolders included")
    parser.add_argument("--held-out", action="store_true", help="only the photographs that training leaves out (3 %%)")
    parser.add_argument("--count", type=int, help="pairs of each kind; the same as count=N")
    parser.add_argument(
        "--output", type=Path, default=Path("outputs/evaluate/homographies"), help="folder of the results"
    )
    parser.add_argument("--weights", help="weights file; without it the built-in model")
    add_device(parser)
    add_settings(parser, "pdc_sfm.evaluation.homographies:HomographySettings")
    parser.set_defaults(paths=Paths(images=("images",), inputs=("weights",), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.homographies import HomographySettings, evaluate_homographies
    from pdc_sfm.evaluation.homography_report import summarize, text, write_results
    from pdc_sfm.matcher import PairSettings, load_matcher
    from pdc_sfm.settings import load_settings
    from pdc_sfm.synthetic.photographs import open_photographs

    words = [*args.settings, *([f"count={args.count}"] if args.count is not None else [])]
    settings = load_settings(HomographySettings, args.config, words)
    photos = open_photographs(args.images, "validation" if args.held_out else "all")
    matcher = load_matcher(args.weights, PairSettings(settings.dense, settings.select), args.device)
    total = settings.count * (len(settings.kinds) + (len(photos) > 1))
    with progress(None, "evaluation", "pair", total) as bar:
        result = evaluate_homographies(photos, matcher, settings, lambda kind, _: bar.tell(kind))
    summary = summarize(result, settings, str(args.weights or "built-in"))
    print(photos.summary())
    print(text(summary))
    for path in write_results(args.output, result, summary):
        print(path)
