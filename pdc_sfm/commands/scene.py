"""Render the built-in scene, a small town square, with true cameras and depth.

Examples:
  pdc-sfm scene --output outputs/square
  pdc-sfm scene --output outputs/aachen --layout aachen night_queries=8 seed=3
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.common import add_settings
from pdc_sfm.commands.paths import Paths
from pdc_sfm.processes import core_count
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--layout",
        choices=("plain", "aachen"),
        default="plain",
        help="plain: images and cameras.json; aachen: the dataset's files",
    )
    parser.add_argument("--version", choices=("1.0", "1.1"), default="1.0", help="of the Aachen layout")
    parser.add_argument("--workers", type=int, default=core_count(), help="processes (default: one per core)")
    add_settings(parser, "pdc_sfm.scenes.settings:SceneSettings")
    parser.set_defaults(paths=Paths(folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.scenes import SceneSettings, write_aachen, write_scene
    from pdc_sfm.settings import load_settings

    settings = load_settings(SceneSettings, args.config, args.settings)
    with progress(None, "scene", "image", settings.total) as bar:
        if args.layout == "aachen":
            write_aachen(args.output, settings, args.version, args.workers, lambda *what: bar.tell(what[-1]))
        else:
            write_scene(args.output, settings, args.workers, lambda *what: bar.tell(what[-1]))
    print(
        f"{settings.database} database, {settings.day_queries} day and {settings.night_queries} night images in {args.output}"
    )
