"""Calibrate confidence: fit a confidence head to pairs with ground truth, and store it with the weights.

The head combines the network's mixture and the result of alignment into the probability that a match is less than a pixel
off. The flow does not change. Pairs are made by warping photographs. Rendered scenes add depth edges and look-alike walls, which
warped photographs lack: pass some with few pictures far apart and some with many close together (`pdc-sfm scene`).

Example:
  pdc-sfm scene --output wide seed=130 && pdc-sfm scene --output near seed=140 database=64
  pdc-sfm train calibrate --weights runs/compact/best.safetensors --photos photos/ --scene wide --scene near \\
      --output calibrated.safetensors
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.commands.train.run import wait_without_spinning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, required=True, help="weights to calibrate")
    parser.add_argument(
        "--photos",
        type=Path,
        required=True,
        help="folder of photographs; those held out from training measure the result",
    )
    parser.add_argument("--objects", type=Path, help="folder of cut-out objects (default: shapes cut from photographs)")
    parser.add_argument(
        "--scene", type=Path, action="append", default=[], help="folder of `pdc-sfm scene`; may be repeated"
    )
    parser.add_argument("--output", type=Path, required=True, help="safetensors file to write")
    parser.add_argument("--pairs", type=int, default=60, help="pairs per kind for the fit (default: 60)")
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(paths=Paths(images=("photos", "objects"), inputs=("weights", "scene"), files=("output",)))


def run(args: argparse.Namespace) -> None:
    wait_without_spinning()
    from pdc_sfm.training.run import calibrate

    found = calibrate(args.weights, args.photos, args.output, args.objects, args.scene, args.pairs, args.threads)
    for kind in found:
        print(f"{kind.kind}: largest gap {kind.gaps[0]:.3f} -> {kind.gaps[1]:.3f}")
        print("        before                 after")
        print(" stated  share   right  stated  share   right")
        for rows in zip(kind.before, kind.after):
            shares = (row[0] / table[:, 0].sum() for row, table in zip(rows, (kind.before, kind.after)))
            cells = (f"{row[1]:5.3f}  {share:6.1%}  {row[2]:6.1%}" for row, share in zip(rows, shares))
            print("  ".join(cells))
