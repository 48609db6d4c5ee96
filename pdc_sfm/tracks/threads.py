"""Work of several threads at a time, its results in order. Numpy lets other threads run while it computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from pdc_sfm.processes import core_count

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """So many threads, by default as many as this process may use cores; with one of them all is done here."""

    def __init__(self, count: int | None = None):
        count = count or core_count()
        self._pool = ThreadPoolExecutor(count, "assemble") if count > 1 else None
        self.ahead = 2 * count

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, call: Callable[[Item], Result], items: Iterable[Item], most: int | None = None) -> Iterator[Result]:
        """The results of all items in their order; of those to come, at most `most` are held in memory."""
        if self._pool is None:
            yield from map(call, items)
            return
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(self._pool.submit(call, item))
            if len(waiting) > min(self.ahead, most or self.ahead):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
