"""Render a built-in scene with known cameras and depth: a small town square, a room, objects on a table, or a
court of equal windows.

Examples:
  pdc-sfm scene --output outputs/square
  pdc-sfm scene --output outputs/aachen --layout aachen night_queries=8 seed=3
  pdc-sfm scene --kind room --output outputs/room seed=3 images=24
  pdc-sfm scene --kind object --photos photos/ --output outputs/object
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.processes import core_count
from pdc_sfm.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.add_argument("--kind", choices=("town", "room", "object", "court"), default="town", help="what to build")
    parser.add_argument(
        "--photos",
        type=Path,
        help="for all but towns: photographs to lay on surfaces, those held out for validation excepted "
        "(default: drawn patterns)",
    )
    parser.add_argument(
        "--layout",
        choices=("plain", "aachen"),
        default="plain",
        help="plain: images and cameras.json; aachen: the dataset's files (towns only)",
    )
    parser.add_argument("--version", choices=("1.0", "1.1"), default="1.0", help="of the Aachen layout")
    parser.add_argument("--workers", type=int, default=core_count(), help="processes (default: one per core)")
    targets = {
        "of a town": "pdc_sfm.scenes.settings:SceneSettings",
        "with another --kind": "pdc_sfm.scenes.settings:WorldSettings",
    }
    add_settings(parser, targets)
    parser.set_defaults(paths=Paths(images=("photos",), folders=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.errors import SettingsError
    from pdc_sfm.scenes import SceneSettings, write_aachen, write_scene
    from pdc_sfm.settings import load_settings

    if args.kind != "town":
        return _world(args)
    if args.photos:
        raise SettingsError("--photos dresses rooms, objects and courts: give it with --kind room, object or court")
    settings = load_settings(SceneSettings, args.config, args.settings)
    with progress(None, "scene", "image", settings.total) as bar:
        if args.layout == "aachen":
            write_aachen(args.output, settings, args.version, args.workers, lambda *what: bar.tell(what[-1]))
        else:
            write_scene(args.output, settings, args.workers, lambda *what: bar.tell(what[-1]))
    print(
        f"{settings.database} database, {settings.day_queries} day and {settings.night_queries} night images in {args.output}"
    )


def _world(args: argparse.Namespace) -> None:
    from pdc_sfm.errors import SettingsError
    from pdc_sfm.scenes import WorldSettings, write_world
    from pdc_sfm.settings import load_settings
    from pdc_sfm.synthetic.photographs import open_photographs

    if args.layout != "plain":
        raise SettingsError(f"--layout {args.layout} is for towns: leave it out with --kind {args.kind}")
    settings = load_settings(WorldSettings, args.config, args.settings)
    photos = [args.photos / name for name in open_photographs(args.photos).names] if args.photos else []
    with progress(None, args.kind, "image", settings.images) as bar:
        write_world(args.output, args.kind, settings, photos, args.workers, lambda *what: bar.tell(what[-1]))
    print(f"{settings.images} images in {args.output}")
