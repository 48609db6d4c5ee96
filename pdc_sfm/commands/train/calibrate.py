"""Make confidence a probability that is true: fit a confidence head to pairs with known truth, and put it beside the weights.

It weighs what the network says of a match and what alignment found out, and says how likely the match is less than a pixel
off. The flow does not change. Pairs of photographs are made; views of rendered scenes have depth edges and walls that look
alike, which photographs have not: name some, of few pictures far apart and of many close together (`pdc-sfm scene`).

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
        "--photos", type=Path, required=True, help="folder of photographs; those training kept apart judge"
    )
    parser.add_argument("--objects", type=Path, help="folder of cut-out objects (default: shapes cut from photographs)")
    parser.add_argument("--scene", type=Path, action="append", default=[], help="folder of `pdc-sfm scene`; repeatable")
    parser.add_argument("--output", type=Path, required=True, help="safetensors file to write")
    parser.add_argument("--pairs", type=int, default=60, help="pairs of each kind to fit to (default: 60)")
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
