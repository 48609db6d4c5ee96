"""Write views of equirectangular panoramas, and the rig that they are: what COLMAP can map.

Each view goes to a folder of its own, under the panorama's name; rig.json says how they look, in COLMAP's form. `pdc-sfm map
--panoramas` does this by itself. To localize panoramas in a map, write their views and give their rig to `localize --map`.

Examples:
  pdc-sfm panoramas panoramas/ --output outputs/views
  pdc-sfm localize --map outputs/sfm --images outputs/views --rig outputs/views/rig.json --output outputs/queries
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("images", type=Path, metavar="PANORAMAS", help="folder of equirectangular images, all around")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the views and of rig.json")
    add_settings(parser, "pdc_sfm.media.panoramas:PanoramaSettings")
    parser.set_defaults(paths=Paths(images=("images",), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.media.panoramas import PanoramaSettings, panorama_views, write_views
    from pdc_sfm.settings import load_settings

    settings = load_settings(PanoramaSettings, args.config, args.settings)
    names = write_views(args.images, args.output, settings)
    print(f"{len(panorama_views(settings))} views of {len(names)} panoramas each, and rig.json -> {args.output}")
