"""Evaluate matches on any image pairs with some ground truth, compared with SIFT.

A line of the list is `image0 image1` and one of: `rot0 rot1 K0 (9) K1 (9) T_1_from_0 (16)`, a relative pose as in the lists
of ScanNet and YFCC; nine numbers of a homography (pixel indices), or the name of a file with it, next to the list; `points x0
y0 x1 y1 ...`, manually placed points; `none`, nothing in common. Lines that begin with # are skipped.

Prints the number of matches of a pair, the share within 5 px and beyond 20 px of the truth (of the epipolar line if a pose is
known; for manually placed points, the share that a nearby match confirms), how many of those beyond have a confidence above
one half, and the pose error (the larger of rotation and translation, degrees) with its AUC. Then, for each tenth
of confidence, the share of right matches, and how many a threshold there would keep. With a pose this is an upper
bound: a match within 1 px of its true place is within sqrt(2) px of the epipolar line, but so are many wrong ones. The
true share is the printed one or less, and "too sure" is a lower bound of the mean overconfidence.

Example:
  pdc-sfm evaluate pairs --list kitchen/pairs_with_gt.txt --images kitchen/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.evaluate.network import add_network, load_network, write_results
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", type=Path, required=True, help="pairs with their ground truth")
    parser.add_argument("--images", type=Path, required=True, help="folder of the images")
    add_network(parser, "pdc_sfm.evaluation.runs.pose_pairs:KnownCameraSettings", "outputs/evaluate/pairs")
    parser.set_defaults(paths=Paths(images=("images",), inputs=("list", "weights"), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.datasets.pair_list import read_pair_list
    from pdc_sfm.evaluation.measures.calibration import reliability_table
    from pdc_sfm.evaluation.runs.listed_pairs import evaluate_list, text
    from pdc_sfm.evaluation.runs.pose_pairs import KnownCameraSettings
    from pdc_sfm.settings import load_settings

    settings = load_settings(KnownCameraSettings, args.config, args.settings)
    pairs = read_pair_list(args.list, args.images)
    with progress(None, "evaluation", "pair", len(pairs)) as bar:
        result = evaluate_list(pairs, load_network(args, settings), settings, bar.tell)
    print(text(result, f"{len(pairs)} pairs of {args.list} (%, degrees)"))
    if result["calibration"]:
        print(reliability_table(result["calibration"], "matches", "right"))
    write_results(args, settings, result)
