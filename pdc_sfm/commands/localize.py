"""Localise queries in a model, by their matches with retrieved images.

Needs a COLMAP model, a list of queries with intrinsics (NAME MODEL WIDTH HEIGHT PARAMS..., one a line; a glob of
several files in quotes), a retrieval list (`query database`, best first), and the features and matches of these pairs.
Writes `name qw qx qy qz tx ty tz` (camera from world) for each localised query, and hloc's log beside it, at the end
and at once. Queries that fail are named and left out.

Example:
  pdc-sfm localize --model sfm/ --queries 'queries/*_with_intrinsics.txt' --retrieval pairs-query.txt \\
      --features feats.h5 --matches matches.h5 --output results.txt
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from pdc_sfm.commands.common import add_settings
from pdc_sfm.commands.paths import Paths

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, required=True, help="COLMAP model of the database images")
    parser.add_argument("--queries", type=Path, required=True, help="list of queries with intrinsics, or a glob")
    parser.add_argument("--retrieval", type=Path, required=True, help="retrieval list: `query database`, best first")
    parser.add_argument("--features", type=Path, required=True, help="feature file (h5)")
    parser.add_argument("--matches", type=Path, required=True, help="match file (h5) of the retrieval list")
    parser.add_argument("--output", type=Path, required=True, help="results file")
    add_settings(parser, "pdc_sfm.colmap.localization.localize_sfm:LocalizationSettings")
    parser.set_defaults(
        paths=Paths(
            models=("model",),
            inputs=("queries", "retrieval", "features", "matches"),
            files=("output",),
            also=lambda args: [Path(f"{args.output}_logs.{end}") for end in ("json", "pkl")],
        )
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
    from pdc_sfm.settings import load_settings

    settings = load_settings(LocalizationSettings, args.config, args.settings)
    inputs = (args.model, args.queries, args.retrieval, args.features, args.matches)
    result = localize(*inputs, args.output, settings)
    for line in result.left_out:
        log.warning(f"left out: {line}")
    for name, reason in result.failed.items():
        print(f"not localised: {name}: {reason}")
    print(f"{result} -> {args.output}")
    return 1 if result.left_out else 0
