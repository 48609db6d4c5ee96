"""Training from folders: what `pdc-sfm train run`, `finetune` and `calibrate` do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pdc_sfm.dense.estimator import Estimator, subpixel_by_default
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.device import check_device
from pdc_sfm.errors import CheckpointError, UserError
from pdc_sfm.progress import progress
from pdc_sfm.settings import load_settings, preset_path, require
from pdc_sfm.synthetic.photographs import open_cutouts, open_photographs
from pdc_sfm.training import calibration
from pdc_sfm.training.calibration_pairs import calibration_kinds
from pdc_sfm.training.canvas import CanvasSource
from pdc_sfm.training.machine import prepare_process, say
from pdc_sfm.training.megadepth import open_megadepth
from pdc_sfm.training.rendered import RenderedScene, RenderedSource
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.training.sources import FixedPairs, MixedSource, Source, SyntheticSource
from pdc_sfm.training.supervision import ModelScene, RealSource, SupervisedScene
from pdc_sfm.training.trainer import TrainResult, train
from pdc_sfm.weights import built_in_path, load_network, read_checkpoint
from pdc_sfm.weights.checkpoint import BUILT_IN, METADATA_KEY, save_tensors

HEAD_CHANNELS = (24, 24)  # channels of a confidence head's layers


def train_on_folders(
    photos: Path,
    settings: TrainSettings,
    output: Path,
    objects: Path | None = None,
    models: Sequence[tuple[Path, Path]] = (),
    megadepth: Path | None = None,
    rendered: Sequence[Path] = (),
) -> TrainResult:
    """Train on self-supervised pairs of photographs, on real pairs of (COLMAP model, images) or of MegaDepth, and on
    pairs of rendered scenes.

    About 3 % of the photographs and a tenth of the real pairs are kept for validation.
    """
    check_device(settings.device)
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
    scenes: list[SupervisedScene] = [ModelScene(model, images, settings.supervision) for model, images in models]
    scenes += open_megadepth(megadepth, settings.supervision) if megadepth else []
    supervision, light, seed = settings.supervision, settings.pairs.photometric, settings.seed
    others: list[tuple[Source, float]] = []
    if scenes:
        say(f"{sum(map(len, scenes))} real pairs in {len(scenes)} scenes")
        real = RealSource(scenes, supervision, light, seed)
        others.append((real, settings.real_share))
        if sum(map(len, scenes)) > 20:
            fixed = replace(fixed, real_source=replace(real, kept_apart=True))
    if rendered:
        towns = [RenderedScene(folder, supervision.min_overlap) for folder in rendered]
        say(f"{sum(len(town.overlapping) for town in towns)} pairs in {len(towns)} rendered scenes")
        others.append((RenderedSource(towns, supervision, light, seed), settings.rendered_share))
    require(sum(share for _, share in others) <= 1, "real_share and rendered_share must not exceed 1 together")
    mixed: Source = MixedSource(source, tuple(others), seed) if others else source
    if settings.canvas_share:
        mixed = CanvasSource(mixed, settings.canvas_share, seed)
    return train(mixed, fixed, settings, output)


def finetune(
    model: Path,
    images: Path,
    output: Path,
    weights: str = BUILT_IN,
    photos: Path | None = None,
    config: Path | str = "finetune",
    overrides: Sequence[str] = (),
) -> TrainResult:
    """Fine-tune a network on the correspondences of a reconstruction, mixed with self-supervised pairs of its images."""
    settings = load_settings(TrainSettings, preset_path(config, "train"), overrides)
    check_device(settings.device)
    architecture = (
        read_checkpoint(built_in_path() if weights == BUILT_IN else weights).without_confidence_head().settings
    )
    settings = replace(settings, network=architecture, start_from=str(weights))
    return train_on_folders(photos or images, settings, output, models=[(model, images)])


@dataclass(frozen=True)
class CalibrationResult:
    """The effect of calibration on one kind of pairs: tables of `calibration.reliability` on held-out pairs."""

    kind: str
    before: np.ndarray
    after: np.ndarray

    @property
    def gaps(self) -> tuple[float, float]:
        """The largest difference between stated and true share, before and after."""
        return calibration.largest_gap(self.before), calibration.largest_gap(self.after)


def calibrate(
    weights: Path,
    photos: Path,
    output: Path,
    objects: Path | None = None,
    scenes: Sequence[Path] = (),
    pairs: int = 60,
    threads: int = 2,
) -> list[CalibrationResult]:
    """Fit a confidence head to `pairs` pairs of each kind: warped photographs, the same with objects, and every rendered scene.

    It is evaluated on photographs held out from training, and on every fifth pair of each scene.
    """
    prepare_process(threads)
    require(pairs >= 1, f"{pairs} pairs: at least one of each kind is needed")
    given = read_checkpoint(weights).without_confidence_head()
    settings = replace(given.settings, confidence_channels=HEAD_CHANNELS)
    estimator = Estimator(load_network(weights), DenseSettings(method="direct"))
    if not subpixel_by_default(estimator.network):
        raise CheckpointError(
            f"{weights} is {given.network}, used as published: only networks that are aligned are judged"
        )
    kinds = calibration_kinds(photos, open_cutouts(objects) if objects else None, scenes, pairs)
    fitting, judging = [], []
    for kind in kinds:
        both = itertools.chain(kind.fitting, kind.judging)
        shown = iter(progress(both, kind.name, "pair", len(kind.fitting) + len(kind.judging)))
        fitting.append(calibration.observe(estimator, itertools.islice(shown, len(kind.fitting))))
        judging.append(calibration.observe(estimator, shown))
    head = calibration.fit(fitting, HEAD_CHANNELS)
    tensors = given.tensors | {f"confidence_head.{name}": tensor for name, tensor in head.state_dict().items()}
    extra = {key: value for key, value in given.metadata.items() if key != METADATA_KEY}
    save_tensors(output, tensors, settings, extra=extra)
    found = []
    for kind, seen in zip(kinds, judging):
        said = seen.stated, calibration.head_confidence(head, seen)
        found.append(CalibrationResult(kind.name, *(calibration.reliability(one, seen.right) for one in said)))
    return found
