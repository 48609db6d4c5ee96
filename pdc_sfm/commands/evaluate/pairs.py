"""Judge matches on any pairs of images of which something is known, SIFT beside.

A line of the list is `image0 image1` and one of: `rot0 rot1 K0 (9) K1 (9) T_1_from_0 (16)`, a relative pose as in the lists
of ScanNet and YFCC; nine numbers of a homography (pixel indices), or the name of a file with it, beside the list; `points x0
y0 x1 y1 ...`, places set by hand; `none`, nothing in common. Lines that begin with # are left out.

Printed are the matches of a pair, the share within 5 px and beyond 20 px of the truth (of the epipolar line, where a pose is
known; of places set by hand, the share that a match nearby confirms), how many of those beyond say that they are more likely
right than wrong, and the error of poses (the larger of rotation and translation, degrees) with its AUC. Then, for each tenth
of confidence, the share of its matches that is right, and what a threshold there would keep. Of a pose this is known from one
side: a match within 1 px of its true place lies within sqrt(2) px of the epipolar line, but so does many a wrong one; the
true share is what is printed or less, and "too sure" is the least by which too much is stated on average.

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
    parser.add_argument("--list", type=Path, required=True, help="pairs and what is known of them")
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
