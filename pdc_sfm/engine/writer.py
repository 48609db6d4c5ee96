"""Writes results in order in one thread, while the next ones are computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")
AHEAD = 2  # items that may wait to be kept: as many a kill may lose, of those a GPU was asked for


class Writer(Generic[Item]):
    """Calls `keep` with each item in a thread. What it raises is raised here at the next item, and no later item is kept."""

    def __init__(self, keep: Callable[[Item], None]):
        self._keep = keep
        self._thread = ThreadPoolExecutor(1, "write")
        self._waiting: deque[Future[None]] = deque()
        self._failed = False

    def __enter__(self) -> Writer[Item]:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._thread.shutdown(wait=True)  # what was computed is kept, also when interrupted
        if error is None:
            self.wait()

    def put(self, item: Item) -> None:
        """Hand an item over; waits while too many are waiting."""
        while self._waiting and (len(self._waiting) >= AHEAD or self._waiting[0].done()):
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(self._call, item))

    def wait(self) -> None:
        """Until all that was handed over is kept."""
        while self._waiting:
            self._waiting.popleft().result()

    def _call(self, item: Item) -> None:
        if self._failed:
            return
        try:
            self._keep(item)
        except BaseException:
            self._failed = True
            raise
