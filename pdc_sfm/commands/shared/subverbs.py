"""Commands with sub-commands, such as `pdc-sfm train run`: packages whose SUBVERBS name a module for each."""

from __future__ import annotations

import argparse
import importlib
from types import ModuleType


def add_subverbs(parser: argparse.ArgumentParser, package: ModuleType) -> None:
    """A parser for each sub-verb, from the module of the package that has its `add_arguments` and `run`."""
    subverbs = parser.add_subparsers(dest="subverb", metavar="WHAT", required=True)
    for name, (module_name, summary) in package.SUBVERBS.items():
        module = importlib.import_module(f"{package.__name__}.{module_name}")
        sub = subverbs.add_parser(
            name, help=summary, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
