"""Match all pairs of a list and write hloc's feature and match files.

After an interruption the same command continues. Pairs of unreadable images are skipped; the images are
listed at the end, and the exit code is 1. --strict stops at the first.
Presets (--config NAME, files of configs/): fast, aachen, aachen_superpoint; with the paper's settings: paper_aachen,
paper_superpoint, pose, retrieval.

Examples:
  pdc-sfm match --pairs pairs.txt --images photos/ --output outputs/
  pdc-sfm match --pairs pairs.txt --images photos/ --output outputs/ --config aachen memory=8GB device=cuda
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths

if TYPE_CHECKING:
    from pdc_sfm.engine.run import MatchResult

log = logging.getLogger(__name__)
SHOWN = 20  # bad images listed by name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", type=Path, required=True, help="pair list: lines `name0 name1`")
    parser.add_argument("--images", type=Path, required=True, help="folder the names are relative to")
    parser.add_argument("--output", type=Path, required=True, help="folder of the results")
    parser.add_argument("--features", type=Path, help="feature file to write or extend")
    parser.add_argument("--matches", type=Path, help="match file to write")
    parser.add_argument(
        "--features-ref",
        type=Path,
        action="append",
        default=[],
        help="a feature file whose keypoints are kept; may be repeated",
    )
    parser.add_argument(
        "--masks", type=Path, metavar="DIR", help="masks, IMAGE.png or IMAGE's name with .png: black is not matched"
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first bad image")
    parser.add_argument("--wait", action="store_true", help="wait for another process that writes the same output")
    parser.add_argument(
        "--overwrite",
        choices=["all", "tracks"],
        nargs="?",
        const="all",
        default="no",
        help="start again; tracks: keep the raw matches and only write the two files again",
    )
    parser.add_argument("--quiet", action="store_true", help="only warnings, no progress")
    add_settings(parser, "pdc_sfm.engine.run:MatchingSettings", group="")
    parser.set_defaults(
        paths=Paths(
            images=("images", "masks"),
            inputs=("pairs",),
            guarded=("features_ref",),
            files=("features", "matches"),
            folders=("output",),
        )
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.engine.run import MatchingSettings, match_pairs
    from pdc_sfm.settings import load_settings

    result = match_pairs(
        args.images,
        args.pairs,
        args.output,
        load_settings(MatchingSettings, args.config, args.settings),
        features=args.features,
        matches=args.matches,
        features_ref=args.features_ref,
        masks=args.masks,
        overwrite=args.overwrite,
        strict=args.strict,
        wait=args.wait,
    )
    return tell(result)


def tell(result: MatchResult) -> int:
    """Print what was done and what was left out. Returns the exit code."""
    loop, summary = result.loop, result.summary
    if result.repeated:
        print(f"{result.repeated} lines of the list repeat a pair, in this or the other order: each is matched once")
    if result.with_itself:
        print(f"{result.with_itself} lines of the list pair an image with itself: left out")
    for remark in loop.remarks:
        log.warning(remark)
    if loop.pairs:
        print(f"matched {loop.pairs} pairs with {loop.encoded} encodings of {loop.images} images")
    if loop.masked:
        print(f"{loop.masked} matches under masks were dropped")
    if summary is None:
        print("nothing to do: all pairs are matched and both files are complete")
    else:
        print(
            f"{summary.keypoints} keypoints of {summary.images} images ({summary.fixed} of them given), "
            f"{summary.matches} matches of {summary.pairs} pairs"
        )
        if not summary.matches:
            log.warning("left out: no match was found at all; try a lower select.threshold")
    print(f"features {result.features}\nmatches {result.matches}")
    for reason in list(loop.bad.values())[:SHOWN]:
        log.warning(f"left out: {reason}")
    if len(loop.bad) > SHOWN:
        log.warning(f"left out: {len(loop.bad) - SHOWN} more images")
    if loop.bad:
        log.warning(f"left out: {len(loop.skipped)} of {result.pairs} pairs, for {len(loop.bad)} bad images")
    return 1 if loop.bad or (summary is not None and not summary.matches) else 0
