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

from pdc_sfm.commands.subverbs import add_subverbs, run

# sub-verb -> what it does; the module is `pdc_sfm.commands.train_SUBVERB`
SUBVERBS = {
    "run": "train on a folder of photographs, or continue a run",
    "finetune": "adapt a network to a COLMAP model of your own images",
    "calibrate": "correct the confidence of trained weights",
    "preview": "write a sheet of training pairs with their ground truth",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_subverbs(parser, SUBVERBS, {name: f"train_{name}" for name in SUBVERBS})


__all__ = ["add_arguments", "run"]
