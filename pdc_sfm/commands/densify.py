"""Make the dense cloud of a map: a depth map of every image, checked between views, fused into a colored cloud with normals.

OUT is what `map`, `reconstruct` or `triangulate` wrote, or any COLMAP model (with --images). Depth starts from the flow
to the best partners of an image and is completed by PatchMatch. A depth is kept if its probability of being right, by
its neighbors and other images, is at least `probability`. It runs on the CPU. After an interruption the same command
continues.

The output, OUT/dense unless --output says otherwise, is a COLMAP dense workspace: fused.ply (points, normals, colors
and `sigma`, the standard deviation in units of the map), fused.ply.vis, and depth maps in stereo/depth_maps. `pdc-sfm view`
shows it.

Examples:
  pdc-sfm densify --map outputs/photos
  pdc-sfm densify --map sfm/ --output outputs/dense --mesh partners=10 probability=0.9
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.processes import core_count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--map", type=Path, required=True, metavar="OUT", help="map, or folder of a COLMAP model")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder to write (default: OUT/dense)")
    parser.add_argument("--images", type=Path, help="images of the map, if they were moved or it does not know them")
    parser.add_argument(
        "--masks", type=Path, metavar="DIR", help="masks of the images: black gets no depth (default: those of the map)"
    )
    parser.add_argument("--mesh", action="store_true", help="also a mesh, meshed-poisson.ply, by COLMAP's Poisson")
    parser.add_argument("--workers", type=int, default=core_count(), help="processes (default: one per core)")
    add_settings(parser, "pdc_sfm.fusion.settings:DensifySettings")
    parser.set_defaults(paths=Paths(images=("images", "masks"), models=("map",), folders=("output",)))


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.fusion import DensifySettings, densify
    from pdc_sfm.settings import load_settings

    settings = load_settings(DensifySettings, args.config, args.settings)
    made = densify(
        args.map,
        args.output,
        settings,
        images=args.images,
        masks=args.masks,
        mesh=args.mesh,
        workers=args.workers,
    )
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in made.seconds.items())
    print(f"{made} -> {made.output / 'fused.ply'} ({spent})")
    return 1 if made.left_out else 0
