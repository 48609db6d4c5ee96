"""Verbs with words of their own after them: `pdc-sfm train run`, `pdc-sfm evaluate scene`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping


def add_subverbs(parser: argparse.ArgumentParser, summaries: Mapping[str, str], modules: Mapping[str, str]) -> None:
    """A parser for each sub-verb, from the module of `pdc_sfm.commands` that has its `add_arguments` and `run`."""
    subverbs = parser.add_subparsers(dest="subverb", metavar="WHAT", required=True)
    for name, summary in summaries.items():
        module = importlib.import_module(f"pdc_sfm.commands.{modules[name]}")
        sub = subverbs.add_parser(
            name, help=summary, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(sub)
        sub.set_defaults(run_subverb=module.run)


def run(args: argparse.Namespace) -> int | None:
    """What the chosen sub-verb does."""
    return args.run_subverb(args)
