"""Localize photographs in a map, with one command or from existing matches.

With --map: OUT is what `map`, `reconstruct`, `triangulate` or `demo` wrote. For each query, images of the map are
retrieved (--top) and matched, best first, until its place is sure (sure=0.9; sure=1: all of them). The poses are written
to results.txt in the folder --output: `name qw qx qy qz tx ty tz`, camera from world. Intrinsics come from --queries,
otherwise from the map's camera with the same image size, otherwise from EXIF. After an interruption the same command
continues. With --rig, queries whose names differ only in the prefixes of its cameras were taken at the same moment and
get one pose from all their matches (docs/files.md); rig.json of a map that was made with a rig has the poses of its
cameras.

Without --map: needs a COLMAP model, a list of queries with intrinsics (lines NAME MODEL WIDTH HEIGHT PARAMS...; a quoted
glob for several files), a retrieval list (`query database`, best first), and the features and matches of these
pairs. Writes the poses to the file --output and hloc's log next to it, both at the end.

Queries that fail are reported and left out. Every pose has a probability of being right: within 0.25 m and 2 degrees (in a
map without metres, within a sixtieth of the median depth). Poses below doubtful=0.5 are written and reported with
the reason and what to do (docs/localization.md).

Examples:
  pdc-sfm localize --map outputs/sfm --images queries/ --output outputs/queries
  pdc-sfm localize --model sfm/ --queries 'queries/*_with_intrinsics.txt' --retrieval pairs-query.txt \\
      --features feats.h5 --matches matches.h5 --output results.txt
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.commands.shared.query_settings import TARGETS, by_prefix, load_query_settings
from pdc_sfm.errors import SettingsError
from pdc_sfm.logs import run_log
from pdc_sfm.run_folder import LOG

log = logging.getLogger(__name__)

LISTS = ("model", "queries", "retrieval", "features", "matches")  # what it needs without a map


class _Paths:
    """What is read and written with a map, and without."""

    mapped = Paths(
        images=("images", "database_images", "masks"),
        inputs=("queries", "features", "rig"),
        models=("map",),
        folders=("output",),
        replaced=("images", "masks", "results.txt"),
    )
    listed = Paths(
        models=("model",),
        inputs=("queries", "retrieval", "features", "matches"),
        files=("output",),
        also=lambda args: [Path(f"{args.output}_logs.{end}") for end in ("json", "pkl")],
    )
    forms = (mapped, listed)

    def check(self, args: argparse.Namespace) -> None:
        (self.listed if args.map is None else self.mapped).check(args)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--map", type=Path, metavar="OUT", help="map to localize in: output of map, reconstruct, triangulate, demo"
    )
    parser.add_argument("--images", type=Path, help="with --map: folder of the queries")
    parser.add_argument(
        "--top", type=int, default=20, help="with --map: at most so many images of the map per query (20)"
    )
    parser.add_argument(
        "--masks", type=Path, metavar="DIR", help="with --map: masks of the queries, IMAGE.png: black is not matched"
    )
    parser.add_argument(
        "--rig",
        type=Path,
        metavar="FILE",
        help="with --map: cameras that took the queries, fixed to each other (COLMAP's JSON)",
    )
    parser.add_argument("--database-images", type=Path, help="with --map: its images, if they were moved")
    parser.add_argument("--model", type=Path, help="COLMAP model of the database images")
    parser.add_argument("--queries", type=Path, help="list of queries with intrinsics, or a glob")
    parser.add_argument("--retrieval", type=Path, help="retrieval list: `query database`, best first")
    parser.add_argument("--features", type=Path, help="feature file (h5); with --map: of the map, if it was moved")
    parser.add_argument("--matches", type=Path, help="match file (h5) of the retrieval list")
    parser.add_argument("--output", type=Path, required=True, help="results file; with --map: folder of the results")
    add_settings(parser, TARGETS)
    parser.set_defaults(paths=_Paths())


def run(args: argparse.Namespace) -> int:
    if args.map is not None:
        return _in_map(args)
    missing = [f"--{name}" for name in LISTS if getattr(args, name) is None]
    if missing:
        raise SettingsError(f"localize needs {', '.join(missing)}; or --map and --images, to do all steps by itself")
    from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
    from pdc_sfm.settings import load_settings

    settings = load_settings(LocalizationSettings, args.config, args.settings)
    inputs = (args.model, args.queries, args.retrieval, args.features, args.matches)
    result = localize(*inputs, args.output, settings)
    for line in result.left_out:
        log.warning(f"left out: {line}")
    for line in result.remarks():
        print(line)
    print(f"{result} -> {args.output}")
    return 1 if result.left_out else 0


def _in_map(args: argparse.Namespace) -> int:
    from pdc_sfm.demo.queries import RESULTS, localize_in_map, open_map, table
    from pdc_sfm.device import check_device

    unused = [f"--{name}" for name in ("model", "retrieval", "matches") if getattr(args, name) is not None]
    if unused or args.images is None:
        raise SettingsError(
            f"{', '.join(unused)} do not go with --map" if unused else "--map needs --images, the queries"
        )
    own = by_prefix(args.settings, ("match", "retrieve"))
    matching, finding, settings = load_query_settings(args.config, own)
    check_device(matching.device, matching.precision, matching.engine)
    mapped = open_map(args.map, args.database_images, args.features)
    with run_log(args.output / LOG):
        result, rows = localize_in_map(
            mapped,
            args.images,
            args.output,
            queries=args.queries,
            top=args.top,
            masks=args.masks,
            rig=args.rig,
            matching=matching,
            finding=finding,
            settings=settings,
        )
    for line in result.left_out:
        log.warning(f"left out: {line}")
    print(table(rows))
    print(f"{sum(row.localized for row in rows.values())} of {len(rows)} queries localized -> {args.output / RESULTS}")
    return 1 if result.left_out else 0
