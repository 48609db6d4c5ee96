"""Render perspective views of equirectangular panoramas, with the rig that they form, for COLMAP.

Each view direction has its own folder, with files named after the panoramas; rig.json has the directions in COLMAP's
format. `pdc-sfm map --panoramas` includes this step. To localize panoramas in a map, write their views and pass their
rig to `localize --map`.

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
    parser.add_argument("images", type=Path, metavar="PANORAMAS", help="folder of equirectangular images (360 degrees)")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the views and rig.json")
    add_settings(parser, "pdc_sfm.media.panoramas:PanoramaSettings")
    parser.set_defaults(paths=Paths(images=("images",), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.media.panoramas import PanoramaSettings, panorama_views, write_views
    from pdc_sfm.settings import load_settings

    settings = load_settings(PanoramaSettings, args.config, args.settings)
    names = write_views(args.images, args.output, settings)
    print(f"{len(panorama_views(settings))} views of {len(names)} panoramas each, and rig.json -> {args.output}")
