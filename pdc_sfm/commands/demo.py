"""Run the whole pipeline on the built-in scene and write a report. For your own photographs use `pdc-sfm map`.

A town square is rendered with known cameras, its images are matched and triangulated, and day and
night queries are retrieved and localized; SIFT does the same for comparison. Every step is recorded: after an interruption the
same command continues. (--images is now `pdc-sfm map`; it will be removed in the next version.)

Example:
  pdc-sfm demo --output outputs/demo
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.mapping_arguments import tell_verdict
from pdc_sfm.commands.shared.paths import Paths

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, help="folder of the run")
    parser.add_argument("--images", type=Path, help="earlier spelling of `pdc-sfm map`")
    parser.add_argument(
        "--masks",
        type=Path,
        metavar="DIR",
        help="with --images: masks, IMAGE.png or IMAGE's name with .png: black is not matched",
    )
    add_settings(
        parser,
        {
            "on the built-in scene": "pdc_sfm.demo.settings:demo_settings",
            "with --images": "pdc_sfm.demo.settings:PhotographSettings",
        },
    )
    parser.set_defaults(
        paths=Paths(images=("images", "masks"), folders=("output",), replaced=("images", "masks", "sfm", "sift"))
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.demo import demo_settings, format_table, run_scene
    from pdc_sfm.logs import run_log
    from pdc_sfm.run_folder import LOG
    from pdc_sfm.settings import load_settings
    from pdc_sfm.weights import weights_path

    if args.images is not None:
        from pdc_sfm.commands.map import map_and_tell
        from pdc_sfm.demo import PhotographSettings

        code = map_and_tell(args, load_settings(PhotographSettings, args.config, args.settings))
        log.warning(f"`pdc-sfm demo --images` is now `pdc-sfm map {args.images} --output {args.output}`")
        return code
    settings = demo_settings(args.config, args.settings)
    weights_path(settings.match.weights)  # says at once if the model is missing
    with run_log(args.output / LOG):
        folder = run_scene(args.output, settings)
    report = folder / "report.html"
    print(f"\n{format_table(folder.record['metrics'])}\n")
    print(f"report: {report}" if settings.report and report.is_file() else f"results: {folder.path}")
    tell_verdict(folder.path / "sfm")
    return 0
