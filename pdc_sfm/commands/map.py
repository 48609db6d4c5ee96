"""Make a map from a folder of photographs: choose pairs, match, reconstruct, check, report.

All pairs of up to 60 photographs are matched. For more photographs, pairs come from retrieval, from neighbors in name and time,
and from GPS in EXIF. For a large folder, the hours and gigabytes needed are estimated first
(--plan does only that). The command ends with a verdict on the map. Every step is recorded: after an interruption the same
command continues.

HEIC photographs need pip install 'pdc-sfm[heic]'. --video takes the sharpest frames of a video (`pdc-sfm frames`), with
one camera. --rig: cameras that are fixed to each other (`pdc-sfm reconstruct --help`). --panoramas: PHOTOS are
equirectangular images; perspective views of them are mapped (`pdc-sfm panoramas`), and each gets one pose.

With known positions the map is in metres: --positions, or GPS in EXIF. With latitudes and longitudes, x is
east, y north, z up; sfm/frame.json has the origin. Positions that disagree with the map are reported and not used.

Examples:
  pdc-sfm map photos/ --output outputs/photos
  pdc-sfm map photos/ --output outputs/photos --positions gps.csv
  pdc-sfm map --video walk.mp4 --fps 2 --output outputs/walk
  pdc-sfm map panoramas/ --panoramas --output outputs/around
  pdc-sfm localize --map outputs/photos --images queries/ --output outputs/queries
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.mapping_arguments import add_position_arguments, tell_verdict
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.errors import SettingsError

if TYPE_CHECKING:
    from pdc_sfm.demo import PhotographSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("images", type=Path, metavar="PHOTOS", nargs="?", help="folder of photographs")
    parser.add_argument(
        "--video", type=Path, action="append", metavar="FILE", help="instead of PHOTOS: a video; may be repeated"
    )
    parser.add_argument("--fps", type=float, default=2.0, metavar="N", help="with --video: frames per second (2)")
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="folder of the map")
    parser.add_argument(
        "--masks", type=Path, metavar="DIR", help="masks, IMAGE.png or IMAGE's name with .png: black is not matched"
    )
    parser.add_argument(
        "--rig", type=Path, metavar="FILE", help="cameras that are fixed to each other, as COLMAP's JSON"
    )
    add_position_arguments(parser)
    parser.add_argument("--panoramas", action="store_true", help="PHOTOS are equirectangular panoramas")
    parser.add_argument("--plan", action="store_true", help="only estimate hours and gigabytes")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if the map is doubtful")
    add_settings(parser, "pdc_sfm.demo.settings:PhotographSettings")
    parser.set_defaults(
        paths=Paths(
            images=("images", "masks"),
            inputs=("video", "rig", "positions", "control"),
            folders=("output",),
            replaced=("images", "masks", "frames", "views", "sfm", "sift"),
        )
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.demo import PhotographSettings, panorama_settings, plan_map, video_settings
    from pdc_sfm.settings import load_settings

    if args.video and args.images is not None and "=" in str(args.images):  # which argparse took for the folder
        args.images, args.settings = None, [str(args.images), *args.settings]
    if (args.images is None) == (not args.video):
        raise SettingsError("map needs a folder of photographs, or --video FILE: one of the two")
    if args.panoramas:
        others = ("video", "rig", "masks", "positions", "control", "plan")
        if unfit := [f"--{name}" for name in others if getattr(args, name)]:
            raise SettingsError(f"{', '.join(unfit)} cannot be given with --panoramas")
    default = video_settings() if args.video else panorama_settings() if args.panoramas else None
    settings = load_settings(PhotographSettings, args.config, args.settings, default=default)
    if args.plan:
        if args.images is None:
            raise SettingsError("--plan needs photographs: take them out of the video with `pdc-sfm frames`")
        print(plan_map(args.images, args.output, settings))
        return 0
    return map_and_tell(args, settings)


def map_and_tell(args: argparse.Namespace, settings: PhotographSettings) -> int:
    """Map, print the result and what speaks against it. Returns the exit code."""
    from pdc_sfm.demo import format_table, run_photographs
    from pdc_sfm.logs import run_log
    from pdc_sfm.run_folder import LOG

    with run_log(args.output / LOG):
        video = {"videos": args.video, "fps": args.fps} if getattr(args, "video", None) else {}
        folder = run_photographs(
            args.images,
            args.output,
            settings,
            masks=args.masks,
            rig=getattr(args, "rig", None),
            positions=getattr(args, "positions", None),
            control=getattr(args, "control", None),
            panoramas=getattr(args, "panoramas", False),
            **video,
        )
    report = folder / "report.html"
    print(f"\n{format_table(folder.record['metrics'])}\n")
    print(f"report: {report}" if settings.report and report.is_file() else f"results: {folder.path}")
    well = tell_verdict(folder / "sfm")  # last of all, where it is seen
    return 1 if getattr(args, "strict", False) and not well else 0
