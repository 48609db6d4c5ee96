"""Train a network on a folder of photographs; the same command continues a run that was stopped.

Settings come from a preset or file (--config compact, compact_stage2, paper_stage1, paper_stage2, or a YAML file) and
key=value words. Real pairs can be added from COLMAP models (--model and --images, repeatable) or from MegaDepth,
rendered pairs from folders of `pdc-sfm scene` (--scene, repeatable).

Examples:
  pdc-sfm train run --photos photos/ --objects cutouts/ --config compact --output runs/compact
  pdc-sfm train run --photos photos/ --model sfm/ --images images/ --config compact --output runs/second \\
      start_from=runs/compact/best.safetensors optimizer.rate=1e-4
  pdc-sfm train run --photos photos/ --scene town1/ --scene town2/ --config compact_stage2 --output runs/third \\
      start_from=runs/compact/best.safetensors
  torchrun --nproc-per-node 2 -m pdc_sfm.cli train run --photos photos/ --config paper_stage1 --output runs/paper
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs, subfolders included")
    parser.add_argument(
        "--objects", type=Path, help="folder of cut-outs with transparency (default: shapes cut from photos)"
    )
    parser.add_argument("--model", type=Path, action="append", default=[], help="COLMAP model: a source of real pairs")
    parser.add_argument("--images", type=Path, action="append", default=[], help="folder of that model's images")
    parser.add_argument("--megadepth", type=Path, help="MegaDepth folder in D2-Net's layout")
    parser.add_argument("--scene", type=Path, action="append", default=[], help="folder of a rendered scene")
    parser.add_argument("--output", type=Path, required=True, help="folder for state, weights, tables and curve")
    add_settings(parser, "pdc_sfm.training.settings:TrainSettings", preset="compact", group="train")
    folders = ("photos", "objects", "images")
    parser.set_defaults(
        paths=Paths(images=folders, models=("model",), inputs=("megadepth", "scene"), folders=("output",))
    )


def run(args: argparse.Namespace) -> int:
    wait_without_spinning()
    from pdc_sfm.errors import SettingsError
    from pdc_sfm.settings import load_settings
    from pdc_sfm.training.machine import say
    from pdc_sfm.training.run import train_on_folders
    from pdc_sfm.training.settings import TrainSettings

    if len(args.model) != len(args.images):
        raise SettingsError(f"{len(args.model)} --model but {len(args.images)} --images: give one for each model")
    settings = load_settings(TrainSettings, args.config, args.settings)
    models = list(zip(args.model, args.images))
    result = train_on_folders(args.photos, settings, args.output, args.objects, models, args.megadepth, args.scene)
    say(result.summary(args.output))
    return 128 + result.stopped if result.stopped else 0


def wait_without_spinning() -> None:
    """Read when torch loads its OpenMP: threads that wait by spinning starve the others if the machine is shared."""
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
