"""Reconstruct cameras and points from images and their matches, with COLMAP.

Writes a COLMAP model, its database, points.ply (coloured) and summary.json into the output folder, at the end and all
at once. Settings (key=value):
  mapper=incremental        or global (GLOMAP)
  camera.model=SIMPLE_RADIAL  any COLMAP model
  camera.params=            fx,fy,cx,cy for PINHOLE and so on; empty: from EXIF or a guess
  camera.mode=auto          which images share a camera: auto (EXIF), single, per_folder, per_image
  camera.refine=true        adjust focal length and distortion
  min_score=0               do not use matches below this confidence
  verification.max_error=4  pixels; also .min_inliers=15 .max_trials=20000 .min_inlier_ratio=0.1
  verify=true               false: take the matches as they are
  two_view_tracks=null      also points seen by two images only; null: if images have fewer than four partners
  mapping_keypoints=8192    cameras are found by so many keypoints of each image, points by all; null: by all
  weak_pairs=0.6            pairs with fewer than this share of the matches that link their images otherwise, and that
                            these do not confirm (things that look alike), find no cameras, only points; 0: all do
  sharpen=true              move observations to where the images themselves agree, then adjust once more
  keep_outliers=false       keep stray points in points.ply (the model keeps all)
  seed=0 threads=0          0 threads: all cores

Example:
  pdc-sfm reconstruct --images photos/ --pairs pairs.txt --features feats.h5 --matches matches.h5 --output sfm/ \\
      camera.model=PINHOLE camera.params=920,922,507,336 camera.mode=single camera.refine=false
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.mapping_arguments import add_mapping_arguments, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_mapping_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.colmap.reconstruction import ReconstructionSettings, reconstruct
    from pdc_sfm.settings import load_settings

    settings = load_settings(ReconstructionSettings, args.config, args.settings)
    result = reconstruct(
        args.images, args.pairs, args.features, args.matches, Path(args.output), settings, verbose=args.verbose
    )
    return tell(result, args.output)
