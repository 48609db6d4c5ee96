"""Make P_1 mean what it says: correct the confidence of trained weights on photographs they were not trained on.

Two numbers are fitted on self-supervised pairs and put into the network's last layer; flow and cost do not change.

Example:
  pdc-sfm train calibrate --weights runs/compact/best.safetensors --photos photos/ --output calibrated.safetensors
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.train_run import wait_without_spinning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, required=True, help="weights to calibrate")
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs; those training kept apart serve")
    parser.add_argument("--output", type=Path, required=True, help="safetensors file to write")
    parser.add_argument("--pairs", type=int, default=64, help="pairs to fit on (default: 64)")
    parser.add_argument("--size", type=int, default=480, help="side of the images (default: 480)")
    parser.add_argument("--threads", type=int, default=2)


def run(args: argparse.Namespace) -> None:
    wait_without_spinning()
    from pdc_sfm.training.run import calibrate

    result = calibrate(args.weights, args.photos, args.output, args.pairs, args.size, args.threads)
    print("        before                 after")
    print("  P_1   share   right    P_1   share   right")
    for before, after in zip(result.before, result.after):
        rows = [(row[1], row[0] / table[:, 0].sum(), row[2]) for row, table in ((before, result.before), (after, result.after))]
        print("  ".join(f"{stated:5.3f}  {share:6.1%}  {right:6.1%}" for stated, share, right in rows))
    print(f"scale {result.scale:.3f}, shift {result.shift:+.3f}: largest gap {result.gaps[0]:.3f} -> {result.gaps[1]:.3f}")
