"""Aachen Day-Night, versions 1.0 and 1.1: from the dataset's folder to the file to submit.

  localize    a model of our matches between the posed database images, then day and night queries in it
  challenge   the local-feature challenge: its pair list, its database, its steps; night queries only

The folder is checked first: missing files are reported with the place where they are expected (--check does only that).
Every step is recorded: the same command continues after a stop, and changed settings repeat only the steps that depend on them.
datasets/README.md says where to get the data. --config is a file or preset of match.* (aachen).

Examples:
  pdc-sfm aachen localize --version 1.1 --dataset datasets/aachen --output outputs/aachen \\
      --retrieval pairs-query-netvlad50.txt --config aachen
  pdc-sfm aachen challenge --version 1.0 --dataset datasets/aachen --output outputs/challenge --check
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.logs import run_log
from pdc_sfm.run_folder import LOG

if TYPE_CHECKING:
    from pdc_sfm.aachen.localization import Retriever
    from pdc_sfm.engine.run import MatchingSettings
    from pdc_sfm.retrieval import RetrievalSettings

MATCHING = {"match": "pdc_sfm.engine.run:MatchingSettings"}  # --config is a file or preset of these
LOCALIZE = {
    "": "pdc_sfm.aachen.localization:AachenSettings",
    **MATCHING,
    "retrieve": "pdc_sfm.retrieval.settings:RetrievalSettings",
}
CHALLENGE = {"": "pdc_sfm.aachen.challenge:ChallengeSettings", **MATCHING}
MADE = tuple(f"{kind}{part}.h5" for kind in ("features", "matches") for part in ("", "-query"))  # and inputs elsewhere

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, settings, work in (("localize", LOCALIZE, _localize), ("challenge", CHALLENGE, _challenge)):
        sub = kinds.add_parser(kind, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        sub.add_argument("--version", choices=("1.0", "1.1"), required=True, help="of the dataset")
        sub.add_argument("--dataset", type=Path, required=True, help="folder of the dataset")
        sub.add_argument("--output", type=Path, required=True, help="folder of the results")
        sub.add_argument("--keypoints", type=Path, help="feature file of a detector (SuperPoint): snap matches to it")
        sub.add_argument("--check", action="store_true", help="only check the dataset's folder")
        sub.add_argument("--verbose", action="store_true", help="show COLMAP's own messages")
        if kind == "localize":
            sub.add_argument("--retrieval", type=Path, help="list of `query database` (default: our own retrieval)")
        add_settings(sub, settings, group="")
        sub.set_defaults(paths=Paths(inputs=("dataset", "keypoints", "retrieval"), folders=("output",), replaced=MADE))
        sub.set_defaults(work=work)


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.aachen.dataset import AachenDataset, LayoutError

    dataset = AachenDataset(args.dataset, args.version)
    try:
        return args.work(args, dataset)
    except LayoutError as error:
        for problem in error.problems:
            log.warning(f"missing: {problem}")
        count = len(error.problems)
        print(
            f"pdc-sfm: Aachen {args.version} in {args.dataset} is not complete: {count} missing, see above and "
            "datasets/README.md",
            file=sys.stderr,
        )
        return 2


def _localize(args: argparse.Namespace, dataset: Any) -> int:
    from pdc_sfm.aachen.localization import AachenSettings, check_localization, run_localization
    from pdc_sfm.pipeline.matching import describe, describe_matching, engine_matcher
    from pdc_sfm.settings import load_settings

    matching, rest = _matching_settings(args)
    retrieval, rest = _split(rest, "retrieve.")
    finding = _retrieval_settings(matching, retrieval)
    settings = load_settings(AachenSettings, None, rest)
    if args.check:
        check_localization(dataset, args.retrieval)
        print(f"Aachen {args.version} in {args.dataset} is complete")
        return 0
    with run_log(args.output / LOG):
        path, result = run_localization(
            dataset,
            args.output,
            engine_matcher(matching, args.keypoints),
            args.retrieval or retriever(finding),
            settings,
            describe_matching(matching, args.keypoints),
            retrieving=None if args.retrieval else describe(finding),
            verbose=args.verbose,
        )
    for line in result.left_out:
        log.warning(f"left out: {line}")
    for line in result.remarks():
        print(line)
    print(f"{result} -> {path}")
    return 1 if result.left_out else 0


def _challenge(args: argparse.Namespace, dataset: Any) -> int:
    from pdc_sfm.aachen.challenge import ChallengeSettings, check_challenge, run_challenge
    from pdc_sfm.pipeline.matching import describe_matching, engine_matcher
    from pdc_sfm.settings import load_settings

    matching, rest = _matching_settings(args)
    settings = load_settings(ChallengeSettings, None, rest)
    if args.check:
        check_challenge(dataset)
        print(f"Aachen {args.version} in {args.dataset} is complete")
        return 0
    matcher, described = engine_matcher(matching, args.keypoints), describe_matching(matching, args.keypoints)
    with run_log(args.output / LOG):
        result = run_challenge(dataset, args.output, matcher, settings, described, verbose=args.verbose)
    for line in result.left_out:
        log.warning(f"left out: {line}")
    for name in result.unregistered:
        print(f"not registered: {name}")
    print(f"{result} -> {result.path}")
    return 1 if result.left_out else 0


def _matching_settings(args: argparse.Namespace) -> tuple[MatchingSettings, list[str]]:
    """`match.KEY=value` are settings of matching, the others of the run."""
    from pdc_sfm.engine.run import MatchingSettings
    from pdc_sfm.settings import load_settings

    own, rest = _split(args.settings, "match.")
    return load_settings(MatchingSettings, args.config, own), rest


def _split(words: list[str], prefix: str) -> tuple[list[str], list[str]]:
    """Settings with a prefix, without it, and all others."""
    own = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
    return own, [word for word in words if not word.startswith(prefix)]


def _retrieval_settings(matching: MatchingSettings, words: list[str]) -> RetrievalSettings:
    """Our own retrieval, with the same network and memory as matching."""
    from pdc_sfm.retrieval import RetrievalSettings
    from pdc_sfm.settings import load_settings

    same = [
        f"{key}={value}" for key in ("weights", "device", "memory") if (value := getattr(matching, key)) is not None
    ]
    return load_settings(RetrievalSettings, None, [*same, *words])


def retriever(settings: RetrievalSettings) -> Retriever:
    """Our own retrieval as a step of the run."""
    from pdc_sfm.commands.retrieve import tell
    from pdc_sfm.retrieval import retrieve

    def find(images: Path, queries: list[str], database: list[str], count: int, target: Path) -> None:
        tell(retrieve(images, queries, database, target, count, settings))

    return find
