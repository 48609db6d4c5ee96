"""Fine-tune a network on your own reconstruction: points seen by two images give true correspondences.

They are mixed with self-supervised pairs of the same images, without which the confidence would get worse.
validation.csv has the figures before and after, on held-out pairs; pass best.safetensors as weights.

Example:
  pdc-sfm train finetune --model sfm/ --images images/ --output runs/mine schedule.iterations=1000
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.commands.train.run import wait_without_spinning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, required=True, help="folder of the COLMAP model")
    parser.add_argument("--images", type=Path, required=True, help="folder of its images")
    parser.add_argument("--output", type=Path, required=True, help="folder for state, weights, tables and curve")
    parser.add_argument("--weights", default="compact", help="initial weights (default: the built-in ones)")
    parser.add_argument("--photos", type=Path, help="photographs for self-supervised pairs (default: the images)")
    add_settings(parser, "pdc_sfm.training.settings:TrainSettings", preset="finetune", group="train")
    parser.set_defaults(
        paths=Paths(images=("images", "photos"), models=("model",), inputs=("weights",), folders=("output",))
    )


def run(args: argparse.Namespace) -> int:
    wait_without_spinning()
    from pdc_sfm.training.machine import say
    from pdc_sfm.training.run import finetune

    result = finetune(args.model, args.images, args.output, args.weights, args.photos, args.config, args.settings)
    say(result.summary(args.output))
    return 128 + result.stopped if result.stopped else 0
