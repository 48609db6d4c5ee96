"""Reconstruct cameras and points from images and their matches, with COLMAP.

Writes a COLMAP model, its database, points.ply (colored) and summary.json into the output folder, at the end and all
at once.
A model that may be nonsense is written too, and said to be doubtful; --strict then ends with exit code 1.

Example:
  pdc-sfm reconstruct --images photos/ --pairs pairs.txt --features feats.h5 --matches matches.h5 --output sfm/ \\
      camera.model=PINHOLE camera.params=920,922,507,336 camera.mode=single camera.refine=false
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.mapping_arguments import add_mapping_arguments, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_mapping_arguments(parser, "pdc_sfm.colmap.mapping.reconstruction:ReconstructionSettings")


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
    from pdc_sfm.settings import load_settings

    settings = load_settings(ReconstructionSettings, args.config, args.settings)
    result = reconstruct(
        args.images, args.pairs, args.features, args.matches, Path(args.output), settings, verbose=args.verbose
    )
    return tell(result, args.output, args.strict)
