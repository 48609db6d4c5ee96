"""Run everything from start to end, on the built-in scene or on your own photographs, and write a report.

Without --images: a town square is rendered with its true cameras; its images are matched and triangulated; day and
night queries are retrieved and localized; SIFT does the same beside it. With --images: a folder of photographs is
matched and reconstructed. Every step is recorded: interrupted, the same command continues.

Examples:
  pdc-sfm demo --output outputs/demo
  pdc-sfm demo --images photos/ --output outputs/photos
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from pathlib import Path

from pdc_sfm.commands.common import add_settings
from pdc_sfm.commands.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, help="folder of the run")
    parser.add_argument("--images", type=Path, help="folder of your own photographs instead of the built-in scene")
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
    from pdc_sfm.demo import format_table
    from pdc_sfm.logs import run_log
    from pdc_sfm.run_folder import LOG
    from pdc_sfm.settings import load_settings
    from pdc_sfm.weights import weights_path

    if args.images is None:
        from pdc_sfm.demo import demo_settings, run_scene

        settings = demo_settings(args.config, args.settings)
        weights_path(settings.match.weights)  # says at once if the model is missing
        work, report_wanted = functools.partial(run_scene, args.output, settings), settings.report
    else:
        from pdc_sfm.demo import PhotographSettings, run_photographs

        chosen = load_settings(PhotographSettings, args.config, args.settings)
        work, report_wanted = (
            functools.partial(run_photographs, args.images, args.output, chosen, masks=args.masks),
            chosen.report,
        )
    with run_log(args.output / LOG):
        folder = work()
    report = folder / "report.html"
    print(f"\n{format_table(folder.record['metrics'])}\n")
    print(f"report: {report}" if report_wanted and report.is_file() else f"results: {folder.path}")
    _tell_verdict(folder.path / "sfm")
    return 0


def _tell_verdict(model: Path) -> None:
    """What the map says of itself, last of all where it is not well (a run that goes on does not make the map again)."""
    from pdc_sfm.colmap.io.models import SUMMARY, Verdict

    summary = model / SUMMARY
    said = json.loads(summary.read_text(encoding="utf-8")).get("verdict") if summary.is_file() else None
    if said and said["kind"] != "consistent":
        for reason in said["reasons"]:
            print(f"{said['kind']}: {reason}", file=sys.stderr)
        print(Verdict(said["kind"], tuple(said["reasons"])), file=sys.stderr)
