"""Runs work in several threads and returns results in order; each thread may use a process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from pdc_sfm.processes import core_count
from pdc_sfm.tracks.subprocesses import Process

Item = TypeVar("Item")
Result = TypeVar("Result")
T_co = TypeVar("T_co", covariant=True)


class Awaited(Protocol[T_co]):
    """What is computed, or will be when it is asked for."""

    def result(self) -> T_co: ...


class Threads:
    """So many threads, by default as many as this process may use cores; with one of them all is done here."""

    def __init__(self, count: int | None = None, processes: bool = False):
        count = count or core_count()
        self._pool = ThreadPoolExecutor(count, "assemble") if count > 1 else None
        self._with_processes = processes and count > 1
        self._own = threading.local()  # the process of each thread
        self._processes: list[Process] = []
        self.ahead = 2 * count

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for process in self._processes:
            process.close()

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

    def begin(self, function: Callable[..., Result], *args: object) -> Awaited[Result]:
        """Have a thread `compute` it; with one thread it is computed when its result is asked for."""
        return _Lazy(function, args) if self._pool is None else self._pool.submit(self.compute, function, *args)

    def compute(self, function: Callable[..., Result], *args: object) -> Result:
        """Call a function of a module, in the process of this thread if it has one. It must not change its arguments."""
        if not self._with_processes:
            return function(*args)
        if not hasattr(self._own, "process"):
            self._own.process = Process()
            self._processes.append(self._own.process)
        return self._own.process.call(function, *args)


class _Lazy(Generic[T_co]):
    def __init__(self, function: Callable[..., T_co], args: tuple[object, ...]):
        self._function, self._args = function, args

    def result(self) -> T_co:
        return self._function(*self._args)
