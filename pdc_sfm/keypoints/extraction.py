"""Keypoints of a folder of images, as an hloc feature file."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pdc_sfm.device import check_device
from pdc_sfm.errors import ImageError
from pdc_sfm.files import exclusive, file_digest
from pdc_sfm.images import list_images, read_image
from pdc_sfm.keypoints.detectors import make_detector
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.paths import keep_apart
from pdc_sfm.progress import progress
from pdc_sfm.settings import result_settings
from pdc_sfm.store.feature_parts import FeatureParts, Features
from pdc_sfm.store.pair_lists import check_name
from pdc_sfm.workers import Block, open_pool

PART_SECONDS = 30.0  # an interrupted run repeats at most this much


@dataclass(frozen=True)
class ExportResult:
    """The result for each image."""

    images: int  # in the feature file
    new: int  # of them made now
    keypoints: int  # made now
    left_out: tuple[str, ...]  # reasons, one an image


def export_keypoints(
    images: Path | str,
    output: Path | str,
    settings: KeypointSettings | None = None,
    *,
    names: Sequence[str] | None = None,
    overwrite: bool = False,
    strict: bool = False,
) -> ExportResult:
    """Detect keypoints in all images of a folder, or in the named ones, and write them to an hloc feature file.

    Images that are already in the file are skipped. A bad image is left out and reported, or ends a `strict` run.
    """
    images, output = Path(images), Path(output)
    settings = settings or KeypointSettings()
    keep_apart(images=[images], files=[output])
    wanted = list_images(images) if names is None else list(dict.fromkeys(names))
    if not wanted:
        raise ImageError(f"{images} holds no images")
    for name in wanted:
        check_name(name)
    with exclusive(output):
        parts = FeatureParts(output, images, made_with(settings), overwrite=overwrite)
        missing = [name for name in wanted if name not in parts.done]
        found = _detect(images, missing, settings, parts, strict) if missing else _Found()
        if not parts.done:
            raise ImageError(f"none of the {len(wanted)} images of {images} could be read: {found.left_out[0]}")
        if parts.sources != [output]:
            parts.merge()
        return ExportResult(len(parts.done), len(missing) - len(found.left_out), found.keypoints, tuple(found.left_out))


def made_with(settings: KeypointSettings) -> dict[str, Any]:
    """The settings that decide the keypoints, with weights identified by their content."""
    weights = settings.weights
    if weights is not None and Path(weights).is_file():
        weights = file_digest(weights)
    return {**result_settings(settings), "weights": weights}


@dataclass
class _Found:
    keypoints: int = 0
    left_out: list[str] = field(default_factory=list)


class KeypointWork:
    """One worker: a detector and the images."""

    def __init__(self, images: Path, settings: KeypointSettings, strict: bool):
        self._images, self._strict = images, strict
        self._detector = make_detector(settings)

    def detect(self, names: Sequence[str], block: Block) -> dict[str, Features | str]:
        """Keypoints of the images of a block, or why there are none."""
        found: dict[str, Features | str] = {}
        for name in names[block.start : block.stop]:
            try:
                image = self._detector.detect(read_image(self._images / name))
            except ImageError as error:
                if self._strict:
                    raise
                found[name] = str(error)
                continue
            found[name] = Features(image.xy, image.scores, image.image_size, image.descriptors, image.uncertainty)
        return found


def _detect(
    images: Path, names: Sequence[str], settings: KeypointSettings, parts: FeatureParts, strict: bool
) -> _Found:
    """Detect and keep: what workers send at once, what this process makes now and then."""
    check_device(settings.device, engine=settings.engine)
    device = "cpu" if settings.detector == "sift" else settings.device
    result = _Found()
    pending: dict[str, Features] = {}
    reasons: dict[str, str] = {}
    local, begun = settings.engine == "local", time.monotonic()
    make = functools.partial(KeypointWork, images if local else images.absolute(), _found_anywhere(settings), strict)
    bar = progress(None, "keypoints", "image", len(names))
    with open_pool(settings.engine, settings.ray, make, device=device) as pool, bar:
        for _, found in pool.run("detect", names, len(names)):
            pending |= {name: features for name, features in found.items() if isinstance(features, Features)}
            reasons |= {name: reason for name, reason in found.items() if isinstance(reason, str)}
            bar.update(len(found))
            if pending and (not local or time.monotonic() - begun > PART_SECONDS):
                result.keypoints += _keep(pending, parts)
                begun = time.monotonic()
    result.keypoints += _keep(pending, parts)
    result.left_out = [reasons[name] for name in names if name in reasons]
    return result


def _keep(pending: dict[str, Features], parts: FeatureParts) -> int:
    """Write what is pending as a part. Returns the number of keypoints."""
    count = sum(len(features.points) for features in pending.values())
    if pending:
        parts.add(pending)
        pending.clear()
    return count


def _found_anywhere(settings: KeypointSettings) -> KeypointSettings:
    """Workers may run in another folder."""
    return settings if settings.weights is None else replace(settings, weights=str(Path(settings.weights).absolute()))
