"""Triangulate matches between images whose cameras are known (a COLMAP model), with COLMAP.

Writes a COLMAP model with the same poses, its database, points.ply (colored) and summary.json into the output folder
when everything is finished. A doubtful model is written too and reported as such; with --strict the exit code is then 1.

Example:
  pdc-sfm triangulate --model known_poses/ --images photos/ --pairs pairs.txt --features feats.h5 \\
      --matches matches.h5 --output sfm/
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.mapping_arguments import add_mapping_arguments, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, required=True, help="COLMAP model with the known cameras and poses")
    add_mapping_arguments(parser, "pdc_sfm.colmap.mapping.triangulation:TriangulationSettings")


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
    from pdc_sfm.settings import load_settings

    settings = load_settings(TriangulationSettings, args.config, args.settings)
    inputs = (args.model, args.images, args.pairs, args.features, args.matches)
    return tell(triangulate(*inputs, args.output, settings, verbose=args.verbose), args.output, args.strict)
