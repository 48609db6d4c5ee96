"""Train a network, fine-tune it on a reconstruction, calibrate it, or look at training pairs.

  run       train on a folder of photographs, or continue a run
  finetune  fine-tune a network on a COLMAP model of your own images
  calibrate calibrate the confidence of trained weights
  preview   write a sheet of training pairs with their ground truth

Example:
  pdc-sfm train preview --photos photos/ --objects cutouts/ --output sheet.png objects=4 mask=injective
"""

from __future__ import annotations

# sub-verb -> its module, and what it does
SUBVERBS = {
    "run": ("run", "train on a folder of photographs, or continue a run"),
    "finetune": ("finetune", "adapt a network to a COLMAP model of your own images"),
    "calibrate": ("calibrate", "correct the confidence of trained weights"),
    "preview": ("preview", "write a sheet of training pairs with their ground truth"),
}
