"""Which images of a large database are most like a query at a first look: one descriptor an image, beside its code.

Descriptors are made once and added to as codes are. Up to `EXACT` images are compared one by one; of more those that short codes
(`retrieval.scan`: faiss, the extra `retrieval`) find most like. Without faiss all are compared, however many.
"""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pdc_sfm.errors import CheckpointError
from pdc_sfm.files import remove_leftovers, write_text
from pdc_sfm.retrieval.codes import PART, CoarseCodes, CodeFolder
from pdc_sfm.retrieval.scan import TRAINED_ON, DescriptorScan
from pdc_sfm.retrieval.vocabulary import Vocabulary
from pdc_sfm.weights.tensor_files import read_safetensors, write_safetensors

log = logging.getLogger(__name__)

EXACT = 50_000  # images: their descriptors take 100 MB, and a comparison with all some ten milliseconds of a core
LEARNED_FROM = 256  # images, spread over the database, whose features give the words


@dataclass(frozen=True)
class Found:
    """An image of a code folder."""

    part: int
    row: int


class DescriptorIndex:
    """The descriptors of a code folder. Hold the lock of the folder (`files.exclusive`) to `update` it.

    `resident`: they stay in memory from the first comparison on, for who asks again and again.
    """

    def __init__(self, folder: CodeFolder, resident: bool = False):
        self._codes, self._folder = folder, folder.folder
        self._kept: dict[int, np.ndarray] | None = {} if resident else None
        self._vocabulary: Vocabulary | None = None
        self._scan: DescriptorScan | None = None

    @property
    def _total(self) -> int:
        return sum(map(len, self._codes.images))

    @property
    def vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            self._vocabulary = self._read_vocabulary() or self._learn()
        return self._vocabulary

    def update(self) -> None:
        """Describe the images that have codes and no descriptor yet."""
        for part in range(len(self._codes.parts)):
            if not self._has(part):
                self._describe(part)
        if self._total > EXACT:
            self._scan, self._kept = self._updated_scan(), None  # the scan is what stays of so many

    def shortlist(self, queries: CoarseCodes, database: Sequence[str], count: int) -> list[list[str]]:
        """For each query the `count` images of the database most like it, best first."""
        asked = self.vocabulary.describe(queries.code.features[4].numpy())
        places = self._codes.rows(database)
        if self._scan is not None and len(database) > EXACT:
            found = self._search(self._scan, asked, places, count)
        else:
            found = self._compare(asked, places, count)
        return [[self._codes.images[one.part][one.row][0] for one in row] for row in found]

    def _compare(self, asked: np.ndarray, places: Sequence[tuple[int, list[int]]], count: int) -> list[list[Found]]:
        """With all, part by part; of each query the best so far are kept."""
        best: np.ndarray = np.zeros((len(asked), 0), np.float32)
        ids: np.ndarray = np.zeros((len(asked), 0), np.int64)
        for part, rows in places:
            likeness = asked @ self._descriptors(part)[rows].T
            best = np.concatenate((best, likeness), 1)
            ids = np.concatenate((ids, np.broadcast_to(part * PART + np.array(rows), likeness.shape)), 1)
            if best.shape[1] > 64 * PART or part == places[-1][0]:
                order = np.argsort(-best, axis=1, kind="stable")[:, :count]
                best, ids = (np.take_along_axis(values, order, 1) for values in (best, ids))
        return [[Found(*divmod(number, PART)) for number in row] for row in ids.tolist()]

    def _search(
        self, scan: DescriptorScan, asked: np.ndarray, places: Sequence[tuple[int, list[int]]], count: int
    ) -> list[list[Found]]:
        """By the short codes of all images of the folder; only those of the database count."""
        starts = np.cumsum([0, *map(len, self._codes.images)])
        allowed = np.zeros(len(scan), bool)
        for part, rows in places:
            allowed[starts[part] + np.array(rows)] = True
        found = scan.search(asked, count, None if allowed.all() else allowed)
        parts = [np.searchsorted(starts, rows, "right") - 1 for rows in found]
        return [
            [Found(part, row) for part, row in zip(of.tolist(), (rows - starts[of]).tolist())]
            for of, rows in zip(parts, found)
        ]

    def _learn(self) -> Vocabulary:
        """From images spread over the folder; written before any descriptor is."""
        every = [(part, row) for part, images in enumerate(self._codes.images) for row in range(len(images))]
        chosen: dict[int, list[int]] = {}
        for part, row in every[:: -(-len(every) // LEARNED_FROM)]:
            chosen.setdefault(part, []).append(row)
        maps = [self._codes.read(part, rows, levels=(4,)).code.features[4].numpy() for part, rows in chosen.items()]
        vocabulary = Vocabulary.learn(np.concatenate(maps))
        tensors = {name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in vars(vocabulary).items()}
        path = self._folder / "vocabulary.safetensors"
        remove_leftovers(path)
        write_safetensors(path, tensors, {})
        return vocabulary

    def _read_vocabulary(self) -> Vocabulary | None:
        found = _read(self._folder / "vocabulary.safetensors")
        if found is None or set(found[0]) != {"mean", "words", "axes"}:
            return None
        return Vocabulary(**{name: tensor.numpy() for name, tensor in found[0].items()})

    def _file(self, part: int) -> Path:
        return self._folder / f"descriptors_{self._codes.parts[part].stem}.safetensors"

    def _describe(self, part: int) -> None:
        images = self._codes.images[part]
        codes = self._codes.read(part, list(range(len(images))), levels=(4,))
        descriptors = self.vocabulary.describe(codes.code.features[4].numpy()).astype(np.float16)
        remove_leftovers(self._file(part))
        write_safetensors(self._file(part), {"descriptors": torch.from_numpy(descriptors)}, self._made_by(part))

    def _made_by(self, part: int) -> dict[str, str]:
        return {"vocabulary": self.vocabulary.digest(), "names": json.dumps([n for n, _ in self._codes.images[part]])}

    def _has(self, part: int) -> bool:
        """Whether the descriptors of a part are there, of these images and words; their numbers are not read."""
        from safetensors import SafetensorError, safe_open

        try:
            made_by = safe_open(self._file(part), framework="np").metadata() or {}
        except (OSError, SafetensorError):
            return False
        return all(made_by.get(key) == value for key, value in self._made_by(part).items())

    def _descriptors(self, part: int) -> np.ndarray:
        """(N, D) float32 of a part; made again if they are damaged."""
        if self._kept is not None and part in self._kept:
            return self._kept[part]
        found = _read(self._file(part))
        if found is None:
            self._describe(part)
            found = read_safetensors(self._file(part))
        descriptors = found[0]["descriptors"].numpy().astype(np.float32)
        if self._kept is not None:
            self._kept[part] = descriptors
        return descriptors

    def _updated_scan(self) -> DescriptorScan | None:
        """Of all parts, on disk too; None where there is no faiss."""
        if importlib.util.find_spec("faiss") is None:
            log.warning(f"{self._total:,} images are compared one by one: `pip install pdc_sfm[retrieval]` is faster")
            return None
        record = self._folder / "index.json"
        parts = [f"{path.stem} {len(images)}" for path, images in zip(self._codes.parts, self._codes.images)]
        known = _read_record(record)
        scan, done = None, 0
        if known.get("vocabulary") == self.vocabulary.digest() and known.get("parts") == parts[: len(known["parts"])]:
            done = len(known["parts"])
            scan = DescriptorScan.open(self._folder, sum(map(len, self._codes.images[:done])))
        if scan is not None and done == len(parts):
            return scan
        index, done = (scan.index, done) if scan is not None else (DescriptorScan.train(self._sample()), 0)
        record.unlink(missing_ok=True)  # while files are written a kill leaves no record, and they are made again
        scan = DescriptorScan.write(self._folder, index, (self._descriptors(part) for part in range(done, len(parts))))
        write_text(record, json.dumps({"vocabulary": self.vocabulary.digest(), "parts": parts}))
        return scan

    def _sample(self) -> np.ndarray:
        """Descriptors to learn short codes from: parts spread over all."""
        needed = min(len(self._codes.parts), -(-TRAINED_ON // PART))
        some = np.linspace(0, len(self._codes.parts) - 1, needed).astype(int)
        return np.concatenate([self._descriptors(part) for part in some.tolist()])


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]] | None:
    """What a file holds; None if it is not there or damaged."""
    try:
        return read_safetensors(path) if path.is_file() else None
    except CheckpointError:
        return None


def _read_record(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("parts"), list) else {}
