"""A feature file written in parts: each part is complete on disk, so a killed run continues."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.pixels import Size
from pdc_sfm.settings import differences
from pdc_sfm.store.image_marks import image_mark
from pdc_sfm.store.readers import open_features
from pdc_sfm.store.writers import new_h5, read_record, write_keypoints, write_record

MARK = "image_mark"  # attribute of an image's group


@dataclass(frozen=True)
class Features:
    """What a feature file holds of an image."""

    points: np.ndarray  # (N, 2) pixel indices
    scores: np.ndarray  # (N,)
    image_size: Size  # (width, height)
    descriptors: np.ndarray | None = None  # (D, N)
    uncertainty: float | None = None  # pixels


class FeatureParts:
    """The parts of a feature file that is being made of `images`. Hold the lock of `output` (`files.exclusive`) meanwhile."""

    def __init__(self, output: Path, images: Path, settings: Mapping[str, Any], *, overwrite: bool = False):
        self.output, self.images = Path(output), Path(images)
        self.folder = self.output.with_name(f".{self.output.name}.parts")
        self.record = {"keypoints": dict(settings)}
        if overwrite:
            shutil.rmtree(self.folder, ignore_errors=True)
        kept = [self.output] if self.output.is_file() and not overwrite else []
        self.sources = [*kept, *sorted(self.folder.glob("*.h5"))]
        self.done: set[str] = set()
        for path in self.sources:
            self._refuse_other_settings(path)
            with open_features(path) as file:
                found = file.names()
                self._refuse_other_images({name: file.attribute(name, MARK) for name in found})
                self.done.update(found)

    def add(self, features: Mapping[str, Features]) -> None:
        """Write one part."""
        path = self.folder / f"{len(list(self.folder.glob('*.h5'))):05d}.h5"
        with new_h5(path) as file:
            for name, image in features.items():
                group = write_keypoints(file, name, image.points, image.scores, image.image_size)
                if mark := image_mark(self.images / name):
                    group.attrs[MARK] = mark
                if image.descriptors is not None:
                    group.create_dataset("descriptors", data=image.descriptors.astype(np.float32))
                if image.uncertainty is not None:
                    group["keypoints"].attrs["uncertainty"] = image.uncertainty
            write_record(file, self.record)
        self.sources.append(path)
        self.done.update(features)

    def merge(self) -> None:
        """Put all parts into the output, at once, and remove them."""
        written: set[str] = set()
        with new_h5(self.output) as target:
            for path in self.sources:
                with open_features(path) as file:
                    for name in file.names():
                        if name not in written:
                            file.copy_image(name, target)
                            written.add(name)
            write_record(target, self.record)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _refuse_other_images(self, marks: Mapping[str, str | None]) -> None:
        for name, mark in marks.items():
            if mark is not None and image_mark(self.images / name) not in (mark, None):
                raise OtherSettingsError(
                    f"{self.output} has features of another image of the name {name}: choose another output, or overwrite",
                    self.output,
                )

    def _refuse_other_settings(self, path: Path) -> None:
        found = read_record(path).get("keypoints")
        if found is None:
            raise OtherSettingsError(
                f"{path} holds features of another origin: choose another output, or overwrite", path
            )
        changes = differences(found, self.record["keypoints"])
        if changes:
            raise OtherSettingsError(
                f"{self.output} was begun with other settings ({'; '.join(changes)}): "
                "choose another output, or overwrite",
                path,
            )
