"""Write a map in the format of another program.

  nerfstudio  transforms.json, images and a cloud: ns-train splatfacto --data DIR
  splats      undistorted images and a COLMAP model in sparse/0, for trainers of Gaussian splats; with points
              of the dense cloud, if there is one
  database    COLMAP's database.db of keypoints and raw matches, with pairs.txt, for matches_importer and mapper
  bundler     bundle.out and list.txt
  nvm         VisualSFM's model.nvm
  ply         points.ply and cameras.ply, for any viewer
  kapture     kapture's folders

OUT is what `map`, `reconstruct` or `triangulate` wrote, or any COLMAP model (with --images). Images are copied; if the
format cannot represent the distortion of a camera, they are undistorted. The output must be a new folder.

Examples:
  pdc-sfm export --map outputs/sfm --to nerfstudio --output outputs/nerf
  pdc-sfm export --map outputs/sfm --to splats --output outputs/splats
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from pdc_sfm.commands.shared.paths import Paths

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--map", type=Path, required=True, metavar="OUT", help="map, or folder of a COLMAP model")
    parser.add_argument("--to", required=True, metavar="FORMAT", help="format, see above")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--images", type=Path, help="images of the map, if they were moved or it does not know them")
    parser.set_defaults(paths=Paths(images=("images",), models=("map",), folders=("output",)))


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.export import export_map

    result = export_map(args.map, args.to, args.output, args.images)
    if result.undistorted:
        log.warning(f"the images are undistorted: {args.to} cannot say the distortion of these cameras")
    print(f"{result.said} -> {result.output}")
    return 0
