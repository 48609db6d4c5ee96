"""Train a network on a folder of photographs; the same command continues a run that was stopped.

Settings come from a preset or file (--config paper_stage1, paper_stage2, compact, or a YAML file) and key=value words.

Example:
  pdc-sfm train run --photos photos/ --objects cutouts/ --config compact --output runs/compact sizes.aspects=1,1.33
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs, subfolders included")
    parser.add_argument("--objects", type=Path, help="folder of cut-outs with transparency; default: shapes of photos")
    parser.add_argument("--output", type=Path, required=True, help="folder for state, weights, tables and curve")
    parser.add_argument("--config", default="compact", help="preset or YAML file (default: compact)")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings that override the preset")


def run(args: argparse.Namespace) -> int:
    # Read when torch loads its OpenMP: threads that wait by spinning starve the others if the machine is shared.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    from pdc_sfm.settings import load_settings
    from pdc_sfm.training.options import TrainSettings
    from pdc_sfm.training.run import preset_path, train_on_photos

    settings = load_settings(TrainSettings, preset_path(args.config), args.settings)
    result = train_on_photos(args.photos, args.objects, settings, args.output)
    print(result.summary(args.output))
    return 128 + result.stopped if result.stopped else 0
