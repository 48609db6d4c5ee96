"""Finished tracks that later images may need: the latest in memory, the others on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO

import numpy as np

from pdc_sfm.tracks.fusion import TrackPoints

KINDS = ("<f4", "<f4", "<i8")  # of points, scores and tracks


class SpillCache:
    """By image name. `most` images stay in memory; the file has no name, and is gone with the process."""

    def __init__(self, folder: Path, most: int):
        self._folder, self._most = folder, most
        self._near: dict[str, TrackPoints] = {}  # the latest used last
        self._far: dict[str, tuple[int, int]] = {}  # where in the file, and how many keypoints
        self._file: IO[bytes] | None = None  # from the first one written to it

    def __contains__(self, name: str) -> bool:
        return name in self._near or name in self._far

    def __getitem__(self, name: str) -> TrackPoints:
        points = self._near.pop(name) if name in self._near else self._read(name)
        self[name] = points
        return points

    def __setitem__(self, name: str, points: TrackPoints) -> None:
        self._near[name] = points
        if len(self._near) > self._most:
            oldest = next(iter(self._near))
            self._write(oldest, self._near.pop(oldest))

    def drop(self, name: str) -> None:
        self._near.pop(name, None)
        self._far.pop(name, None)

    def _write(self, name: str, points: TrackPoints) -> None:
        if name in self._far:  # it does not change
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)
        self._far[name] = (self._file.seek(0, 2), len(points))
        for array, kind in zip((points.points, points.scores, points.tracks), KINDS):
            self._file.write(array.astype(kind).tobytes())

    def _read(self, name: str) -> TrackPoints:
        file, (start, count) = self._file, self._far[name]
        assert file is not None  # what is far was written
        file.seek(start)
        points, scores, tracks = (np.frombuffer(file.read(size * count), kind) for kind, size in zip(KINDS, (8, 4, 8)))
        return TrackPoints(points.reshape(-1, 2), scores, tracks)
