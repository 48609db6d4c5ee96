"""Detect keypoints in a folder of images and write them as an hloc feature file, to snap dense matches to.

Images that are already in the output are skipped, so an interrupted run continues.

Example:
  pdc-sfm keypoints --images photos/ --output keypoints.h5 detector=superpoint weights=superpoint_v1.pth min_side=600
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", type=Path, required=True, help="folder of the images")
    parser.add_argument("--output", type=Path, required=True, help="feature file (h5)")
    parser.add_argument("--overwrite", action="store_true", help="start again, and replace the output")
    parser.add_argument("--strict", action="store_true", help="stop at the first image that cannot be read")
    add_settings(parser, "pdc_sfm.keypoints.types:KeypointSettings", group="keypoints")
    parser.set_defaults(paths=Paths(images=("images",), files=("output",)))


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.keypoints.extraction import export_keypoints
    from pdc_sfm.keypoints.types import KeypointSettings
    from pdc_sfm.settings import load_settings

    settings = load_settings(KeypointSettings, args.config, args.settings)
    result = export_keypoints(args.images, args.output, settings, overwrite=args.overwrite, strict=args.strict)
    for reason in result.left_out:
        log.warning(f"left out: {reason}")
    mean = result.keypoints / max(result.new, 1)
    print(f"{result.new} images with {mean:.0f} keypoints each; {result.images} in all -> {args.output}")
    return 1 if result.left_out else 0
