"""Run everything from start to end, on the built-in scene or on your own photographs, and write a report.

Without --images: a town square is rendered with its true cameras; its images are matched and triangulated; day and
night queries are retrieved and localised; SIFT does the same beside it. With --images: a folder of photographs is
matched and reconstructed. Every step is recorded: interrupted, the same command continues. Settings (key=value):
  scene.seed=0 scene.database=24 scene.day_queries=8 scene.night_queries=8
  neighbours=8              database images matched with each database image
  retrieved=8               database images matched with each query (--images: 20)
  exhaustive=30             --images: up to so many photographs, all pairs are matched
  sift=true report=true     SIFT's row beside ours; the report
  match.KEY retrieve.KEY    see `pdc-sfm match --help`, `pdc-sfm retrieve --help`
  triangulation.KEY localization.KEY, with --images reconstruction.KEY    see those commands

Examples:
  pdc-sfm demo --output outputs/demo
  pdc-sfm demo --images photos/ --output outputs/photos
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.mapping_arguments import add_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, help="folder of the run")
    parser.add_argument("--images", type=Path, help="folder of your own photographs instead of the built-in scene")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.settings import load_settings
    from pdc_sfm.weights import weights_path

    if args.images is None:
        from pdc_sfm.demo import demo_settings, run_scene

        settings = demo_settings(args.config, args.settings)
        weights_path(settings.match.weights)  # says at once if the model is missing
        run_scene(args.output, settings)
    else:
        from pdc_sfm.demo import PhotographSettings, run_photographs

        run_photographs(args.images, args.output, load_settings(PhotographSettings, args.config, args.settings))
    return 0
