"""Where the benchmarks find photographs and pair lists that are not in the repository (datasets/README.md, "Benchmarks")."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = (os.environ.get("PDC_SFM_DATA"), ROOT / "datasets/benchmarks", ROOT.parent / "shared/data")
DATA = next((Path(place) for place in PLACES if place and Path(place).is_dir()), ROOT / "datasets/benchmarks")
ABSENT = "the data are not here: datasets/README.md tells what goes into datasets/benchmarks"


def needed(path: Path) -> Path:
    """The path, or an end with a line that says what is missing."""
    if not path.exists():
        raise SystemExit(f"{path} is not here: datasets/README.md tells where the benchmarks' data come from")
    return path
