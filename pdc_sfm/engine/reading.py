"""Reads images ahead in threads, while the network works on earlier ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

Read = TypeVar("Read")  # what is made of an image: its pixels, for one


class ReadAhead(Generic[Read]):
    """Reads images of a folder in threads, at most `ahead` at a time beyond those taken."""

    def __init__(self, folder: Path, threads: int, read: Callable[[Path], Read]):
        self.folder = folder
        self.ahead = 2 * threads
        self._read = read
        self._pool = ThreadPoolExecutor(threads, "read") if threads else None
        self._pending: dict[str, Future[Read]] = {}

    def __enter__(self) -> ReadAhead[Read]:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def forget(self) -> None:
        """Images that were begun are not needed after all."""
        for future in self._pending.values():
            future.cancel()
        self._pending.clear()

    def __contains__(self, name: str) -> bool:
        return name in self._pending

    @property
    def has_room(self) -> bool:
        return self._pool is not None and len(self._pending) < self.ahead

    def start(self, name: str) -> None:
        """Begin to read an image."""
        if self._pool is not None and name not in self._pending:
            self._pending[name] = self._pool.submit(self._read, self.folder / name)

    def take(self, name: str) -> Read:
        """What was read; raises ImageError if that cannot be."""
        future = self._pending.pop(name, None)
        return self._read(self.folder / name) if future is None else future.result()
