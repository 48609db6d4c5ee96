"""Evaluate matches and relative poses on photographs with known cameras, compared with SIFT.

cameras.json holds for each image: width, height, fx, fy, cx, cy, R_cam_from_world, t_cam_from_world (`pdc-sfm scene` writes
one). Each image is paired with those 1, 2 and 4 places further on by name. Prints the share of matches
within 2 px of the true epipolar line, the median pose error (the larger of rotation and translation, degrees), AUC
and mAP; poses of both methods are refined on all their inliers (pose.refine=true). Then, for each tenth of
confidence, the share of matches that can be right (within sqrt(2) px of the line), and how many a threshold there would keep.

Example:
  pdc-sfm evaluate epipolar --images fountain/images --cameras fountain/cameras.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.evaluate.network import add_network, load_network, write_results
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", type=Path, required=True, help="folder of the photographs")
    parser.add_argument("--cameras", type=Path, required=True, help="cameras.json")
    parser.add_argument("--gaps", type=int, nargs="+", default=(1, 2, 4), help="places between the images of a pair")
    add_network(parser, "pdc_sfm.evaluation.runs.pose_pairs:KnownCameraSettings", "outputs/evaluate/epipolar")
    parser.set_defaults(paths=Paths(images=("images",), inputs=("cameras", "weights"), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.datasets.known_cameras import neighbor_pairs
    from pdc_sfm.evaluation.measures.calibration import reliability_table
    from pdc_sfm.evaluation.runs.pose_pairs import KnownCameraSettings, evaluate_poses
    from pdc_sfm.evaluation.runs.pose_report import summarize, text
    from pdc_sfm.settings import load_settings

    settings = load_settings(KnownCameraSettings, args.config, args.settings)
    pairs = neighbor_pairs(args.images, args.cameras, args.gaps)
    with progress(None, "evaluation", "pair", len(pairs)) as bar:
        groups = evaluate_poses(pairs, load_network(args, settings), settings, bar.tell)
    summary = summarize(groups)
    print(
        text(summary, f"{len(pairs)} pairs of {args.images}: matches near the epipolar line, pose errors (%, degrees)")
    )
    print(reliability_table({"pose": summary}, "matches", "right"))
    write_results(args, settings, summary)
