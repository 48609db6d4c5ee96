"""Write one self-contained HTML file about a run: results, model, pairs, localization, retrieval, settings.

The run is a folder written by `pdc-sfm demo` or `pdc-sfm map`. If it is incomplete, the report says what is missing and
shows the rest.

Example:
  pdc-sfm report outputs/demo
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.common import add_device
from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--pairs", type=int, default=6, help="pairs shown with flow and confidence (default: 6)")
    add_device(parser)
    parser.set_defaults(paths=Paths(folders=("run_folder",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.errors import SettingsError
    from pdc_sfm.report import write_report

    if args.pairs < 1:
        raise SettingsError(f"--pairs {args.pairs}: at least 1")
    path = write_report(args.run_folder, pairs=args.pairs, device=args.device)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
