"""Triangulate matches between images whose cameras are known (a COLMAP model), with COLMAP.

Writes a COLMAP model with the same poses, its database, points.ply (coloured) and summary.json into the output folder,
at the end and all at once. Settings (key=value):
  geometry=known            matches must agree with the known poses, within each keypoint's own uncertainty;
                            estimated: with a geometry estimated from themselves; none: take them as they are
  verification.max_error=4  pixels, or units of the keypoints' uncertainty where the features say it
  min_score=0               do not use matches below this confidence
  two_view_tracks=false     also points seen by two images only
  sharpen=true              move observations to where the images themselves agree, then place the points once more
  keep_outliers=false       keep stray points in points.ply (the model keeps all)
  seed=0 threads=0          0 threads: all cores

Example:
  pdc-sfm triangulate --model known_poses/ --images photos/ --pairs pairs.txt --features feats.h5 \\
      --matches matches.h5 --output sfm/
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.mapping_arguments import add_mapping_arguments, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, required=True, help="COLMAP model with the known cameras and poses")
    add_mapping_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.colmap.triangulation import TriangulationSettings, triangulate
    from pdc_sfm.settings import load_settings

    settings = load_settings(TriangulationSettings, args.config, args.settings)
    inputs = (args.model, args.images, args.pairs, args.features, args.matches)
    return tell(triangulate(*inputs, args.output, settings, verbose=args.verbose), args.output)
