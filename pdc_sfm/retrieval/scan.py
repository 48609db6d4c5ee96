"""The descriptors of very many images: all of them looked at in short codes, the best of those compared whole.

Half a byte for every four numbers (product quantization, Jegou et al. 2011, with tables in registers, Andre et al. 2015): a
million descriptors are 128 MB, and a core looks through them in some ten milliseconds. No list of neighbors is left out, as
an inverted file would, so nothing depends on how the descriptors gather. What the codes get wrong is put right by the
descriptors themselves, in half precision in a file that is mapped into memory: only those of the best are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.files import atomic_path

NUMBERS = 4  # of a descriptor, in half a byte
REFINED = 3000  # of a query, compared whole: 0.989 of the five best of a million, 15 ms (benchmarks/million.py)
TRAINED_ON = 20_000  # descriptors: more than a thousand for each of 16 centers


class DescriptorScan:
    """A faiss index of short codes and the file of the same descriptors, in the same order."""

    def __init__(self, index: Any, whole: np.ndarray):
        self.index, self._whole = index, whole  # (N, D) float16

    def __len__(self) -> int:
        return int(self.index.ntotal)

    @staticmethod
    def files(folder: Path) -> tuple[Path, Path]:
        """Short codes, and whole descriptors."""
        return folder / "index.faiss", folder / "index.descriptors"

    @staticmethod
    def train(sample: np.ndarray) -> Any:
        """An empty index for descriptors like these (N, D)."""
        import faiss

        size = sample.shape[1]
        codes = size // NUMBERS if size % (2 * NUMBERS) == 0 else size
        index = faiss.IndexPQFastScan(size, codes, 4, faiss.METRIC_INNER_PRODUCT)
        index.train(np.ascontiguousarray(sample[:: max(1, len(sample) // TRAINED_ON)], np.float32))
        return index

    @classmethod
    def open(cls, folder: Path, rows: int) -> DescriptorScan | None:
        """The one that was written with so many descriptors; None where its files are missing or damaged."""
        import faiss

        short, whole = cls.files(folder)
        try:
            index = faiss.read_index(str(short))
        except RuntimeError:
            return None
        if index.ntotal != rows or not whole.is_file() or whole.stat().st_size < 2 * rows * index.d:
            return None
        return cls(index, np.memmap(whole, np.float16, "r", shape=(rows, index.d)))

    @classmethod
    def write(cls, folder: Path, index: Any, more: Iterable[np.ndarray]) -> DescriptorScan:
        """Add descriptors, chunk by chunk, to an index whose own lie in its file already, and write both."""
        import faiss

        short, whole = cls.files(folder)
        if index.ntotal == 0:
            whole.unlink(missing_ok=True)  # not written over: another process may have it mapped
        whole.touch()
        with open(whole, "r+b") as file:
            file.truncate(2 * index.ntotal * index.d)  # what a run that was killed had added
            file.seek(0, 2)
            for rows in more:
                index.add(np.ascontiguousarray(rows, np.float32))
                file.write(np.ascontiguousarray(rows, np.float16).tobytes())
        with atomic_path(short) as partial:
            faiss.write_index(index, str(partial))
        return cls(index, np.memmap(whole, np.float16, "r", shape=(index.ntotal, index.d)))

    def search(self, asked: np.ndarray, count: int, allowed: np.ndarray | None = None) -> list[np.ndarray]:
        """For each descriptor (Q, D) the rows of the `count` most like it, best first; of `allowed` (N,) only, if given."""
        total, asked = len(self), np.ascontiguousarray(asked, np.float32)
        share = 1.0 if allowed is None else max(float(allowed.mean()), 1 / total)
        depth = min(total, round(max(REFINED, 2 * count) / share))  # short codes know nothing of what is allowed
        found = self.index.search(asked, depth)[1]
        return [self._refine(one, rows[rows >= 0], count, allowed) for one, rows in zip(asked, found)]

    def _refine(self, one: np.ndarray, rows: np.ndarray, count: int, allowed: np.ndarray | None) -> np.ndarray:
        if allowed is not None:
            rows = rows[allowed[rows]]
        rows = np.sort(rows)  # on disk one after the other; of equals the first
        likeness = self._whole[rows].astype(np.float32) @ one
        return rows[np.argsort(-likeness, kind="stable")[:count]]
