"""Make the map of a folder of photographs: choose pairs, match, reconstruct, check, report.

All pairs of up to 60 photographs are matched; of more, those that retrieval finds, neighbors in name and time, and the
nearest by GPS where the files say it. Before a large folder begins, a plan says how many hours and gigabytes it takes
(--plan: that alone). What speaks against the result is said at the end. Every step is recorded: interrupted, the same
command continues.

Examples:
  pdc-sfm map photos/ --output outputs/photos
  pdc-sfm localize --map outputs/photos --images queries/ --output outputs/queries
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.commands.common import add_settings
from pdc_sfm.commands.mapping_arguments import tell_verdict
from pdc_sfm.commands.paths import Paths

if TYPE_CHECKING:
    from pdc_sfm.demo import PhotographSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("images", type=Path, metavar="PHOTOS", help="folder of photographs")
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="folder of the map")
    parser.add_argument(
        "--masks", type=Path, metavar="DIR", help="masks, IMAGE.png or IMAGE's name with .png: black is not matched"
    )
    parser.add_argument("--plan", action="store_true", help="say what it would take, and do nothing")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if the map is doubtful")
    add_settings(parser, "pdc_sfm.demo.settings:PhotographSettings")
    parser.set_defaults(
        paths=Paths(images=("images", "masks"), folders=("output",), replaced=("images", "masks", "sfm", "sift"))
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.demo import PhotographSettings, plan_map
    from pdc_sfm.settings import load_settings

    settings = load_settings(PhotographSettings, args.config, args.settings)
    if args.plan:
        print(plan_map(args.images, args.output, settings))
        return 0
    return map_and_tell(args, settings)


def map_and_tell(args: argparse.Namespace, settings: PhotographSettings) -> int:
    """Map, print the result and what speaks against it. Returns the exit code."""
    from pdc_sfm.demo import format_table, run_photographs
    from pdc_sfm.logs import run_log
    from pdc_sfm.run_folder import LOG

    with run_log(args.output / LOG):
        folder = run_photographs(args.images, args.output, settings, masks=args.masks)
    report = folder / "report.html"
    print(f"\n{format_table(folder.record['metrics'])}\n")
    print(f"report: {report}" if settings.report and report.is_file() else f"results: {folder.path}")
    well = tell_verdict(folder / "sfm")  # last of all, where it is seen
    return 1 if getattr(args, "strict", False) and not well else 0
