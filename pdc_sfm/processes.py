"""Items prepared ahead by other processes and delivered in order.

Worker w makes items w, w + workers, ... and writes them to a pipe, which a thread of this process empties into a short
queue. A worker whose reader is gone, even killed, gets a broken pipe and ends.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import queue
import threading
import traceback
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pdc_sfm.errors import UserError

T = TypeVar("T")


def core_count() -> int:
    """Cores that this process may use; where the system does not say, those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    make: Callable[[int], T],
    start: int = 0,
    stop: int | None = None,
    step: int = 1,
    workers: int = 0,
    prefetch: int = 2,
) -> Generator[T, None, None]:
    """make(start), make(start + step), ... up to `stop` (None: for ever), whatever the number of workers.

    With workers `make` and what it returns must be picklable, and a script must guard its main part, as multiprocessing
    asks. Closing the iterator ends the workers.
    """
    if not workers:
        yield from map(make, _numbers(start, stop, step))
        return
    with contextlib.ExitStack() as stack:
        sources = [
            stack.enter_context(_ItemWorker(make, _numbers(start + w * step, stop, step * workers), prefetch))
            for w in range(workers)
        ]
        for source, _ in zip(itertools.cycle(sources), _numbers(start, stop, step)):
            yield source.get()


def _numbers(start: int, stop: int | None, step: int) -> Iterable[int]:
    return itertools.count(start, step) if stop is None else range(start, stop, step)


@dataclass(frozen=True)
class _Failure:
    """What went wrong in a worker, and whether the user can put it right."""

    text: str
    by_user: bool = False


class _ItemWorker:
    """One process, its pipe, and the thread that empties it."""

    def __init__(self, make: Callable[[int], Any], numbers: Iterable[int], prefetch: int) -> None:
        context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
        self._receive, send = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(make, numbers, send), daemon=True)
        self._queue: queue.Queue = queue.Queue(maxsize=max(1, prefetch))
        self._stop = threading.Event()
        self._process.start()
        send.close()
        self._thread = threading.Thread(target=self._empty, daemon=True)
        self._thread.start()

    def _empty(self) -> None:
        item = None
        while not self._stop.is_set() and not isinstance(item, _Failure):
            try:
                item = self._receive.recv()
            except (EOFError, OSError):
                item = _Failure("a worker process was killed: is memory exhausted?")
            while not self._stop.is_set():
                with contextlib.suppress(queue.Full):
                    self._queue.put(item, timeout=0.2)
                    break

    def get(self) -> Any:
        item = self._queue.get()
        if isinstance(item, _Failure):
            raise (UserError if item.by_user else RuntimeError)(item.text)
        return item

    def __enter__(self) -> _ItemWorker:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._process.terminate()
        self._process.join()
        self._thread.join()
        self._receive.close()


def _work(make: Callable[[int], Any], numbers: Iterable[int], send: Any) -> None:
    import cv2

    cv2.setNumThreads(1)  # one process is one core
    try:
        for number in numbers:
            send.send(make(number))
    except (BrokenPipeError, KeyboardInterrupt):
        return
    except UserError as error:
        send.send(_Failure(str(error), by_user=True))
    except BaseException:
        send.send(_Failure(f"a worker process failed:\n{traceback.format_exc()}"))
