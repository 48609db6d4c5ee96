"""Evaluate a network on a dataset of the paper, with the paper's protocol; the published results are printed too.

Supported layouts (see datasets/README.md):
  megadepth    DIR/test1600Pairs.csv, DIR/test1600Pairs/      (RANSAC-Flow's test set)
  robotcar     DIR/test6511.csv, DIR/images/                  (RANSAC-Flow's)
  eth3d        DIR/info_ETH3D_files/, DIR/multiview_*/        (GLU-Net's)
  kitti        DIR/training/{image_2,colored_0}, flow_occ     (2012 or 2015)
  hpatches     DIR/{i_*,v_*}/                                 sparse: MMA of the 2000 most confident matches
  hpatches240  DIR/v_*/                                       dense, at 240x240
  yfcc         DIR/, and --pairs yfcc_test_pairs_with_gt_original.txt (SuperGlue's list)
  scannet      DIR/, and --pairs scannet_test_pairs_with_gt.txt
The paper's (H) and (MS) are dense.method=homography and multiscale.

Example:
  pdc-sfm evaluate megadepth --data MegaDepth/Test --weights PDCNet_plus_megadepth.pth.tar --limit 100
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

from pdc_sfm.commands.evaluate.network import add_network, load_network, write_results
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the dataset")
    parser.add_argument("--pairs", type=Path, help="the table or list of pairs, if it is elsewhere")
    parser.add_argument("--images", type=Path, help="the folder of images, if it is elsewhere")
    parser.add_argument("--limit", type=int, help="only so many pairs (hpatches: sequences), for a quick test")
    add_network(
        parser, functools.partial(_defaults, parser.prog.split()[-1]), None, " (default: outputs/evaluate/DATASET)"
    )
    parser.set_defaults(paths=Paths(images=("images",), inputs=("data", "pairs", "weights"), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.errors import FormatError, SettingsError

    if args.limit is not None and args.limit < 1:
        raise SettingsError(f"--limit {args.limit}: at least 1")
    if not args.data.is_dir():
        raise FormatError(f"{args.data} is not a folder: --data takes the folder of the dataset")
    args.output = args.output or Path("outputs/evaluate") / args.subverb
    {"hpatches": _mma, "yfcc": _poses, "scannet": _poses}.get(args.subverb, _flow)(args)


def _flow(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.plots import plot_sparsification
    from pdc_sfm.evaluation.runs.flow_datasets import count_pairs, evaluate_dataset, open_parts

    settings = _settings(args)
    parts = open_parts(args.subverb, args.data, args.images, args.pairs)
    with progress(None, "evaluation", "pair", count_pairs(parts, args.limit)) as bar:
        result = evaluate_dataset(args.subverb, parts, load_network(args, settings), settings, args.limit, bar.tell)
    print(result.text("ours" if args.weights is None else Path(args.weights).stem))
    write_results(args, settings, result.summary())
    for part, scores in result.parts.items():
        if scores.curves:
            plot_sparsification(
                scores.mean_curves(), args.output / f"sparsification_{part.replace(' ', '_')}.png", part
            )


def _mma(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.measures.matching import MMA_THRESHOLDS
    from pdc_sfm.evaluation.plots import plot_accuracy
    from pdc_sfm.evaluation.runs.mma import evaluate_mma

    settings = _settings(args)
    with progress(None, "evaluation", "pair") as bar:
        result = evaluate_mma(args.data, load_network(args, settings), settings, args.limit, bar.tell)
    print(result.text())
    write_results(args, settings, result.summary())
    curves = {method: (MMA_THRESHOLDS, result.accuracy(method, "iv")) for method in result.methods}
    plot_accuracy(curves, args.output / "mma.png", "threshold (px)", "MMA (%)", "HPatches")


def _poses(args: argparse.Namespace) -> None:
    from pdc_sfm.errors import SettingsError
    from pdc_sfm.evaluation.datasets.pose_list import read_pose_list
    from pdc_sfm.evaluation.published import POSES
    from pdc_sfm.evaluation.runs.pose_pairs import evaluate_poses
    from pdc_sfm.evaluation.runs.pose_report import summarize, text

    if args.pairs is None:
        raise SettingsError(f"{args.subverb} needs --pairs: SuperGlue's list of pairs with ground truth")
    settings = _settings(args)
    pairs = read_pose_list(args.pairs, args.images or args.data)[: args.limit]
    with progress(None, "evaluation", "pair", len(pairs)) as bar:
        groups = evaluate_poses(pairs, load_network(args, settings), settings, bar.tell)
    summary = summarize(groups)
    rows = [[method, *(f"{v:.2f}" for v in values)] for method, values in POSES[args.subverb].items()]
    print(text(summary, f"{args.subverb}: two-view poses, AUC and mAP (%)", rows))
    write_results(args, settings, {**summary, "published": POSES[args.subverb]})


def _defaults(name: str) -> Any:
    """What a dataset's protocol asks for."""
    if name == "hpatches":
        from pdc_sfm.evaluation.runs.mma import MmaSettings

        return MmaSettings()
    if name in ("yfcc", "scannet"):
        from pdc_sfm.evaluation.runs.pose_pairs import PosePairSettings

        return PosePairSettings()
    from pdc_sfm.evaluation.runs.flow_datasets import FLOW_DATASETS
    from pdc_sfm.evaluation.runs.flow_pairs import FlowSettings
    from pdc_sfm.settings import load_settings

    return load_settings(FlowSettings, None, FLOW_DATASETS[name].words)


def _settings(args: argparse.Namespace) -> Any:
    from pdc_sfm.settings import load_settings

    default = _defaults(args.subverb)
    return load_settings(type(default), args.config, args.settings, default)
