"""Training from folders: what `pdc-sfm train run` does."""

from __future__ import annotations

import sys
from pathlib import Path

from pdc_sfm.errors import SettingsError
from pdc_sfm.training.options import TrainSettings
from pdc_sfm.training.photographs import open_cutouts, open_photographs
from pdc_sfm.training.sources import FixedPairs, SyntheticSource
from pdc_sfm.training.trainer import TrainResult, train

PRESETS = Path(__file__).resolve().parents[2] / "configs" / "train"


def preset_path(name: str) -> Path:
    """A YAML file, or a preset by its name."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path
    preset = PRESETS / f"{name}.yaml"
    if not preset.is_file():
        known = ", ".join(sorted(file.stem for file in PRESETS.glob("*.yaml"))) or "none found"
        raise SettingsError(f"no preset {name}: give a YAML file or one of {known}")
    return preset


def train_on_photos(photos: Path, objects: Path | None, settings: TrainSettings, output: Path) -> TrainResult:
    """Train on self-supervised pairs of a folder's photographs; about 3 % of them are kept for validation."""
    training = open_photographs(photos, "training")
    print(training.summary(), file=sys.stderr)
    cutouts = open_cutouts(objects) if objects else None
    held_out = open_photographs(photos, "validation")
    source = SyntheticSource(training, cutouts, settings.pairs, settings.seed)
    return train(source, FixedPairs(held_out, cutouts, settings.pairs), settings, output)
