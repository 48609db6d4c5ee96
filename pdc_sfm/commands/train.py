"""Train a network, adapt one to a reconstruction, or look at the training pairs.

  run       train on a folder of photographs, or continue a run
  finetune  adapt a network to a COLMAP model of your own images
  calibrate correct the confidence of trained weights
  preview   write a sheet of training pairs with their ground truth

Example:
  pdc-sfm train preview --photos photos/ --objects cutouts/ --output sheet.png objects=4 mask=injective
"""

from __future__ import annotations

import argparse
import importlib

# sub-verb -> what it does. The module `pdc_sfm.commands.train_SUBVERB` has `add_arguments(parser)` and `run(args)`.
SUBVERBS = {
    "run": "train on a folder of photographs, or continue a run",
    "finetune": "adapt a network to a COLMAP model of your own images",
    "calibrate": "correct the confidence of trained weights",
    "preview": "write a sheet of training pairs with their ground truth",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    subverbs = parser.add_subparsers(dest="subverb", metavar="SUBVERB", required=True)
    for name, summary in SUBVERBS.items():
        module = importlib.import_module(f"pdc_sfm.commands.train_{name}")
        sub = subverbs.add_parser(
            name, help=summary, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(sub)
        sub.set_defaults(run_subverb=module.run)


def run(args: argparse.Namespace) -> int | None:
    return args.run_subverb(args)
