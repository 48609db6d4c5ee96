"""Add photographs to a map, without matching its images again.

OUT is what `map`, `reconstruct`, `triangulate` or `extend` wrote; it is not changed. The folder --output becomes a map
with the new photographs, for `localize --map`, `view`, `export` and `extend`. Each new photograph is matched with images
of the map and with other new ones (with all if there are up to 60, otherwise with those that retrieval finds), against the
existing keypoints of the map. Old poses, intrinsics and the frame of the map do not change; --adjust adjusts
everything at the end. The command ends with a verdict on the new map. Every step is recorded: after an interruption the same
command continues.

Examples:
  pdc-sfm extend --map outputs/photos --images new/ --output outputs/more
  pdc-sfm extend --map outputs/photos --images new/ --output outputs/more --adjust
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.mapping_arguments import tell_verdict
from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--map", type=Path, required=True, metavar="OUT", help="map to extend; it is not changed")
    parser.add_argument("--images", type=Path, required=True, help="folder of the photographs to add")
    parser.add_argument("--output", type=Path, required=True, metavar="OUT2", help="folder of the new map")
    parser.add_argument("--adjust", action="store_true", help="adjust old poses and points too; the frame stays")
    parser.add_argument(
        "--masks", type=Path, metavar="DIR", help="masks of the photographs to add, IMAGE.png: black is not matched"
    )
    parser.add_argument("--database-images", type=Path, help="images of the map, if they were moved")
    parser.add_argument("--features", type=Path, help="feature file (h5) of the map, if it was moved")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if the map is doubtful")
    add_settings(parser, "pdc_sfm.demo.extension:ExtendSettings")
    parser.set_defaults(
        paths=Paths(
            images=("images", "masks", "database_images"),
            inputs=("features",),
            models=("map",),
            folders=("output",),
            replaced=("images", "masks", "sfm"),
        )
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.demo import format_table
    from pdc_sfm.demo.extension import ExtendSettings, extend_map
    from pdc_sfm.demo.queries import open_map
    from pdc_sfm.device import check_device
    from pdc_sfm.logs import run_log
    from pdc_sfm.run_folder import LOG
    from pdc_sfm.settings import load_settings

    settings = load_settings(ExtendSettings, args.config, args.settings)
    if args.adjust:
        settings = dataclasses.replace(settings, extension=dataclasses.replace(settings.extension, adjust=True))
    check_device(settings.match.device, settings.match.precision, settings.match.engine)
    mapped = open_map(args.map, args.database_images, args.features)
    with run_log(args.output / LOG):
        folder = extend_map(mapped, args.images, args.output, settings, masks=args.masks)
    print(f"\n{format_table(folder.record['metrics'])}\n")
    report = folder / "report.html"
    print(f"report: {report}" if settings.report and report.is_file() else f"results: {folder.path}")
    well = tell_verdict(folder / "sfm")  # last of all, where it is seen
    return 1 if args.strict and not well else 0
