"""Training from folders: what `pdc-sfm train run` and `pdc-sfm train finetune` do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pdc_sfm.errors import SettingsError, UserError
from pdc_sfm.settings import load_settings
from pdc_sfm.training.machine import say
from pdc_sfm.training.megadepth import open_megadepth
from pdc_sfm.training.options import TrainSettings
from pdc_sfm.training.photographs import open_cutouts, open_photographs
from pdc_sfm.training.sources import FixedPairs, MixedSource, SyntheticSource
from pdc_sfm.training.supervision import ModelScene, RealSource, Scene
from pdc_sfm.training.trainer import TrainResult, train
from pdc_sfm.weights import built_in_path, read_checkpoint
from pdc_sfm.weights.checkpoint import BUILT_IN

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


def train_on_folders(
    photos: Path,
    settings: TrainSettings,
    output: Path,
    objects: Path | None = None,
    models: Sequence[tuple[Path, Path]] = (),
    megadepth: Path | None = None,
) -> TrainResult:
    """Train on self-supervised pairs of photographs, and on real pairs of (COLMAP model, images) or of MegaDepth.

    About 3 % of the photographs and a tenth of the real pairs are kept for validation.
    """
    training = open_photographs(photos, "training")
    say(training.summary())
    try:
        apart = open_photographs(photos, "validation")
    except UserError:
        apart = training  # the fixed pairs are then other warps of the same photographs
        say(f"{photos} has too few photographs to keep some for validation")
    cutouts = open_cutouts(objects) if objects else None
    source = SyntheticSource(training, cutouts, settings.pairs, settings.seed)
    fixed = FixedPairs(apart, cutouts, settings.pairs)
    scenes: list[Scene] = [ModelScene(model, images, settings.supervision) for model, images in models]
    scenes += open_megadepth(megadepth, settings.supervision) if megadepth else []
    if not scenes:
        return train(source, fixed, settings, output)
    say(f"{sum(map(len, scenes))} real pairs in {len(scenes)} scenes")
    real = RealSource(scenes, settings.supervision, settings.pairs.photometric, settings.seed)
    if sum(map(len, scenes)) > 20:
        fixed = replace(fixed, real_source=replace(real, kept_apart=True))
    return train(MixedSource(source, real, settings.real_share, settings.seed), fixed, settings, output)


def finetune(
    model: Path,
    images: Path,
    output: Path,
    weights: str = BUILT_IN,
    photos: Path | None = None,
    config: Path | str = "finetune",
    overrides: Sequence[str] = (),
) -> TrainResult:
    """Adapt a network to a reconstruction: its correspondences, mixed with self-supervised pairs of the same images."""
    architecture = read_checkpoint(built_in_path() if weights == BUILT_IN else weights).settings
    settings = load_settings(TrainSettings, preset_path(str(config)), overrides)
    settings = replace(settings, network=architecture, start_from=str(weights))
    return train_on_folders(photos or images, settings, output, models=[(model, images)])
