"""The file that h5py writes to. When the disk is full, h5py cannot even close what it has begun: here it can."""

from __future__ import annotations

from io import FileIO
from pathlib import Path
from typing import BinaryIO


class Target:
    """A file for `h5py.File`. After `give_up` it takes everything and keeps nothing, so that closing finds an end."""

    def __init__(self, path: Path):
        self._file = FileIO(path, "w+")
        self._lost = False

    def give_up(self) -> None:
        self._lost = True

    def close(self) -> None:
        self._file.close()

    def write(self, data: memoryview) -> int:
        if self._lost:
            self._file.seek(len(data), 1)
        else:
            write_all(self._file, data)
        return len(data)

    def readinto(self, buffer: memoryview) -> int:
        count = self._file.readinto(buffer) or 0
        if not self._lost:
            return count
        buffer[count:] = bytes(len(buffer) - count)
        return len(buffer)

    def read(self, size: int = -1) -> bytes:
        """h5py knows a file by this, and then calls `readinto`."""
        return self._file.read(size)

    def truncate(self, size: int | None = None) -> int:
        return self._file.tell() if self._lost else self._file.truncate(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        """Nothing waits: the file has no buffer."""


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """A write to a disk with little room left may take only a part."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
