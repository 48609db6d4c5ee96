"""What a report reads of a run folder; every part may be missing."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.images import fitted_size as fitted
from pdc_sfm.images import list_images, read_image, resize_image
from pdc_sfm.matches.masks import Masks
from pdc_sfm.run_folder import RECORD, read_record
from pdc_sfm.store.journal import RawStore

# name in the folder -> what the report shows of it; those after the first line only where queries were localized
PARTS = {
    "run.json": "settings, versions, times and the table of results",
    "images": "all pictures",
    "pairs.txt": "the pair graph",
    "matches.raw": "the gallery of pairs and the histogram of matches",
    "sfm": "the model and the histogram of track lengths",
}
QUERY_PARTS = {
    "retrieval.txt": "the retrieval strips",
    "results.txt": "the poses of the queries",
    "results.txt_logs.json": "the inliers of each query",
    "localization.json": "the errors of each query",
    "sift.json": "SIFT's row",
}


class Missing(Exception):
    """A part of the report cannot be shown; the text says what it needs."""


class Run:
    """A run folder, read on demand."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise FormatError(f"{folder} is not a folder: give the folder of a run, as `pdc-sfm demo` writes it")
        if not any((self.folder / name).exists() for name in {**PARTS, **QUERY_PARTS}):
            raise FormatError(f"{folder} holds nothing of a run: `pdc-sfm demo --output {folder}` makes one")
        self.record = read_record(self.folder) if (self.folder / RECORD).is_file() else {}

    @property
    def has_queries(self) -> bool:
        """Whether localization belongs to this run. Of photographs there may be retrieval alone."""
        kind = self.record.get("kind")
        return kind == "scene" or (kind is None and any((self.folder / name).exists() for name in QUERY_PARTS))

    def missing_parts(self) -> list[str]:
        """A line for each file that should be there."""
        expected = {**PARTS, **QUERY_PARTS} if self.has_queries else PARTS
        return [f"{name}: {what}" for name, what in expected.items() if not (self.folder / name).exists()]

    def json(self, name: str) -> Any:
        """A JSON file of the run."""
        path = self.folder / name
        if not path.is_file():
            raise Missing(f"{name} is not there")
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise Missing(f"{name} cannot be read: {error}") from None

    def image(self, name: str) -> np.ndarray:
        """An image of the run, (H, W, 3) uint8."""
        return read_image(self.folder / "images" / name)

    @functools.cached_property
    def masks(self) -> Masks | None:
        """Masks of the images, if the run was given some."""
        return Masks(self.folder / "masks") if (self.folder / "masks").is_dir() else None

    def thumb(self, name: str, side: int) -> np.ndarray:
        """An image with its longer side shrunk to `side`."""
        image = self.image(name)
        return resize_image(image, fitted(image.shape[1::-1], max_side=side))

    @functools.cached_property
    def image_count(self) -> int:
        return len(list_images(self.folder / "images")) if (self.folder / "images").is_dir() else 0

    @functools.cached_property
    def raw(self) -> RawStore:
        """Raw matches of the model's pairs."""
        return self._store("matches.raw")

    @functools.cached_property
    def raw_queries(self) -> RawStore:
        """Raw matches of the queries."""
        return self._store("matches-query.raw")

    def _store(self, name: str) -> RawStore:
        if not (self.folder / name).is_dir():
            raise Missing(f"{name} is not there")
        return RawStore(self.folder / name)

    @functools.cached_property
    def model(self) -> Any:
        """The COLMAP model."""
        from pdc_sfm.colmap.io.models import load_model

        if not (self.folder / "sfm").is_dir():
            raise Missing("sfm is not there")
        try:
            return load_model(self.folder / "sfm")
        except UserError as error:
            raise Missing(str(error)) from None
