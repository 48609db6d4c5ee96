"""Arguments and messages that the mapping commands share."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.paths import MADE_MODEL

if TYPE_CHECKING:
    from pdc_sfm.colmap.io.models import MappingResult


def add_mapping_arguments(parser: argparse.ArgumentParser, settings: str) -> None:
    """What reconstruction and triangulation have in common."""
    parser.add_argument("--images", type=Path, required=True, help="folder of the images")
    parser.add_argument("--pairs", type=Path, required=True, help="pair list that was matched")
    parser.add_argument("--features", type=Path, required=True, help="feature file (h5)")
    parser.add_argument("--matches", type=Path, required=True, help="match file (h5)")
    parser.add_argument("--output", type=Path, required=True, help="folder of the new model")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if the model is doubtful or falls apart")
    parser.add_argument("--verbose", action="store_true", help="show COLMAP's own messages")
    add_settings(parser, settings)
    inputs = ("pairs", "features", "matches", "positions", "control")
    parser.set_defaults(
        paths=Paths(
            images=("images",), inputs=(*inputs, "rig"), models=("model",), folders=("output",), replaced=MADE_MODEL
        )
    )


def add_position_arguments(parser: argparse.ArgumentParser) -> None:
    """What brings a map into metres."""
    parser.add_argument(
        "--positions",
        type=Path,
        metavar="FILE",
        help="lines `name lat lon alt [sigma]` or `name x y z [sigma]` (metres)",
    )
    parser.add_argument(
        "--control", type=Path, metavar="FILE", help="control points and known distances (docs/files.md)"
    )


def tell(result: MappingResult, output: Path, strict: bool) -> int:
    """Print the result of a mapping. Returns 1 if something of the input could not be used, or a `strict` user doubts it."""
    result.warn()
    for line in result.remarks:
        print(line)
    print(f"{result.summary} -> {output}", flush=True)
    consistent = result.verdict.kind == "consistent"
    print(result.verdict, file=sys.stdout if consistent else sys.stderr)  # at the very end, where it is seen
    return 1 if result.left_out or (strict and not consistent) else 0


def tell_verdict(model: Path) -> bool:
    """Print what a map says of itself; whether it is well.

    It is read from the map's summary, as a run that goes on does not make the map again.
    """
    from pdc_sfm.colmap.io.models import SUMMARY, Verdict

    summary = model / SUMMARY
    said = json.loads(summary.read_text(encoding="utf-8")).get("verdict") if summary.is_file() else None
    if not said:
        return True
    if said["kind"] == "consistent":
        print(Verdict())
        return True
    for reason in said["reasons"]:
        print(f"{said['kind']}: {reason}", file=sys.stderr)
    print(Verdict(said["kind"], tuple(said["reasons"])), file=sys.stderr)
    return False
