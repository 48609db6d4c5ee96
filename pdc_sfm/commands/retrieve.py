"""Find the database images that show the same place as each query: a pair list `query database`, best first, as in hloc.

Images are ranked by the number of matches with a confidence above a threshold; the query is the reference image. Counts are kept
next to the output (--counts): an interrupted run continues, and another --top does not count again. A JSON file next to the list
has the counts. Queries without a confident match are reported and have no row.

LIST is a file of names (the first word of each line), a quoted glob, or a folder below --images.

Examples:
  pdc-sfm retrieve --images images/ --queries queries.txt --database db/ --top 20 --output pairs-query.txt
  pdc-sfm retrieve --images photos/ --queries . --database . --top 20 --output pairs.txt --codes outputs/codes
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths

if TYPE_CHECKING:
    from pdc_sfm.retrieval import RetrievalResult

log = logging.getLogger(__name__)
SHOWN = 20  # bad images and silent queries listed by name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", type=Path, required=True, help="folder the names are relative to")
    parser.add_argument("--queries", type=Path, required=True, metavar="LIST", help="images to find others for")
    parser.add_argument("--database", type=Path, required=True, metavar="LIST", help="images to choose from")
    parser.add_argument("--top", type=int, default=20, help="images retrieved for each query (20)")
    parser.add_argument("--output", type=Path, required=True, help="the pair list to write")
    parser.add_argument("--counts", type=Path, help="folder of the counts (default: next to the output)")
    parser.add_argument(
        "--codes", type=Path, help="folder of database codes, to share with other runs (default: with the counts)"
    )
    parser.add_argument(
        "--masks", type=Path, metavar="DIR", help="masks, IMAGE.png or IMAGE's name with .png: black is not matched"
    )
    parser.add_argument("--quiet", action="store_true", help="only warnings, no progress")
    add_settings(parser, "pdc_sfm.retrieval.settings:RetrievalSettings", group="retrieve")
    parser.set_defaults(
        paths=Paths(
            images=("images", "masks"),
            inputs=("queries", "database"),
            files=("output",),
            folders=("counts", "codes"),
            also=lambda args: [args.output.with_suffix(".json")] if args.output.name else [],
        )
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.retrieval import RetrievalSettings, retrieve
    from pdc_sfm.settings import load_settings

    settings = load_settings(RetrievalSettings, args.config, args.settings)
    files = {"counts": args.counts, "codes": args.codes, "masks": args.masks}
    result = retrieve(args.images, args.queries, args.database, args.output, args.top, settings, **files)
    return tell(result)


def tell(result: RetrievalResult) -> int:
    """Print what was found and what was left out. Returns the exit code."""
    if result.unmasked:
        log.warning(result.unmasked)
    lines = [f"no confident match: {name}" for name in result.unmatched if name not in result.bad]
    lines += [f"left out: {reason}" for reason in result.bad.values()]
    for line in lines[:SHOWN]:
        log.warning(line)
    if len(lines) > SHOWN:
        log.warning(f"... and {len(lines) - SHOWN} more such images")
    print(f"{result} -> {result.pairs}")
    return 1 if lines else 0
