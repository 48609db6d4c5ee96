"""Shared by the sub-commands: which network is evaluated, and the file of its figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdc_sfm.commands.shared.common import Target, add_device, add_settings

if TYPE_CHECKING:
    from pdc_sfm.matcher import Matcher


def add_network(parser: argparse.ArgumentParser, settings: Target, output: str | None, about: str = "") -> None:
    """The network, the settings it is evaluated with, and the folder of the results (`about` it, where that is no default)."""
    folder = Path(output) if output else None
    parser.add_argument("--output", type=Path, default=folder, help=f"folder of the results{about}")
    parser.add_argument("--weights", help="weights file (default: the built-in model)")
    add_device(parser)
    add_settings(parser, settings)


def load_network(args: argparse.Namespace, settings: Any) -> Matcher:
    """The matcher to evaluate, with `dense` and, where they have it, `select` of the settings."""
    from pdc_sfm.matcher import PairSettings, load_matcher

    chosen = {name: getattr(settings, name) for name in ("dense", "select") if hasattr(settings, name)}
    return load_matcher(args.weights, PairSettings(**chosen), args.device)


def network_name(args: argparse.Namespace) -> str:
    """As results say which network made them."""
    return str(args.weights or "built-in")


def write_results(args: argparse.Namespace, settings: Any, figures: dict[str, Any]) -> None:
    """Figures with the network and the settings they belong to."""
    from pdc_sfm.evaluation.tables import write_json
    from pdc_sfm.settings import to_dict

    path = args.output / "results.json"
    write_json(path, {"weights": network_name(args), "settings": to_dict(settings), **figures})
    print(path)
