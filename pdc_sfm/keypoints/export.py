"""Keypoints of a folder of images, as an hloc feature file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pdc_sfm.errors import ImageError
from pdc_sfm.files import exclusive
from pdc_sfm.images import list_images, read_image
from pdc_sfm.keypoints.detectors import make_detector
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.settings import to_dict
from pdc_sfm.store.feature_parts import FeatureParts, Features

PART_SECONDS = 30.0  # an interrupted run repeats at most this much


@dataclass(frozen=True)
class ExportResult:
    """What became of the images."""

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
    show: bool = False,
) -> ExportResult:
    """Detect keypoints in all images of a folder, or in the named ones, and write them to an hloc feature file.

    Images that the file has already are kept; a bad image is left out and reported, or ends a `strict` run.
    """
    images, output = Path(images), Path(output)
    settings = settings or KeypointSettings()
    wanted = list_images(images) if names is None else list(dict.fromkeys(names))
    if not wanted:
        raise ImageError(f"{images} holds no images")
    with exclusive(output):
        made_with = {key: value for key, value in to_dict(settings).items() if key != "device"}
        parts = FeatureParts(output, made_with, overwrite=overwrite)
        missing = [name for name in wanted if name not in parts.done]
        detector = make_detector(settings) if missing else None
        pending: dict[str, Features] = {}
        left_out, count, begun = [], 0, time.monotonic()
        for name in _progress(missing, show):
            try:
                found = detector.detect(read_image(images / name))
            except ImageError as error:
                if strict:
                    raise
                left_out.append(str(error))
                continue
            pending[name] = Features(found.xy, found.scores, found.image_size, found.descriptors, found.uncertainty)
            count += len(found.xy)
            if time.monotonic() - begun > PART_SECONDS:
                parts.add(pending)
                pending, begun = {}, time.monotonic()
        if pending:
            parts.add(pending)
        if not parts.done:
            raise ImageError(f"none of the {len(wanted)} images of {images} could be read: {left_out[0]}")
        if parts.sources != [output]:
            parts.merge()
        return ExportResult(len(parts.done), len(missing) - len(left_out), count, tuple(left_out))


def _progress(names: Sequence[str], show: bool) -> Sequence[str]:
    if not show:
        return names
    from tqdm import tqdm

    return tqdm(names, desc="keypoints", unit="image")
