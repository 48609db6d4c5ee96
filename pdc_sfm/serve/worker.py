"""Requests are worked on here, one after the other, by threads that hold the map; who waits is told.

Additions to the map take minutes: they have a thread of their own, and no one waits for them who asks something else.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from pdc_sfm.client.answers import Request
from pdc_sfm.engine.work import out_of_memory
from pdc_sfm.errors import UserError
from pdc_sfm.serve.metrics import Metrics
from pdc_sfm.serve.requests import ADDITION, RequestStore, Task

log = logging.getLogger(__name__)

Answer = Callable[[Task, Callable[[str, int, int], None]], dict[str, Any]]
REMEMBERED = 32  # durations by which the wait of a full queue is told
FIRST_GUESS = 5.0  # seconds of a request before one was answered
PAUSE = 5.0  # seconds until the next try where the requests cannot be written, as on a full disk


class WorkStage(NamedTuple):
    """How far a request is."""

    stage: str
    done: int
    total: int


class Workers:
    """So many threads; `answer` does a request, and what it raises is said to who asked."""

    def __init__(self, store: RequestStore, answer: Answer, count: int, metrics: Metrics, additions: bool = False):
        self._store, self._answer, self._metrics = store, answer, metrics
        self._wake, self._ended = threading.Condition(), False
        self._waiting: dict[str, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}
        self._progress: dict[str, WorkStage] = {}
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)
        self._threads = [threading.Thread(target=self._run, name=f"serve-{number}") for number in range(count)]
        self._count = count
        if additions:
            self._threads.append(threading.Thread(target=self._run, args=(True,), name="serve-add"))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def ended(self) -> bool:
        """Whether nothing new is begun."""
        return self._ended

    def end(self) -> None:
        """Begin nothing new: what is queued stays for the next start."""
        self._ended = True  # without the lock: a signal's handler calls it

    def stop(self) -> None:
        """Return when what is being worked on is finished."""
        with self._wake:
            self._ended = True
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()

    def wake(self) -> None:
        """There is something to do."""
        with self._wake:
            self._wake.notify_all()  # one of them may be for other requests

    def retry_after(self) -> int:
        """Seconds in which the queue is likely to be shorter by one."""
        usual = sorted(self._seconds)[len(self._seconds) // 2] if self._seconds else FIRST_GUESS
        return max(1, round(usual / self._count))

    def watch(self, number: str) -> asyncio.Event:
        """An event of the running loop that is set when a request is finished."""
        event = asyncio.Event()
        with self._wake:
            self._waiting.setdefault(number, []).append((asyncio.get_running_loop(), event))
        return event

    def forget(self, number: str) -> None:
        """No one waits for it any more."""
        with self._wake:
            self._waiting.pop(number, None)

    def look(self, number: str) -> Request | None:
        """A request with how far it is."""
        found = self._store.get(number)
        told = self._progress.get(number)
        if found is None or told is None or found.state != "running":
            return found
        return dataclasses.replace(found, **told._asdict())

    def _run(self, additions: bool = False) -> None:
        while True:
            with self._wake:
                if self._ended:
                    return
                try:
                    task = self._store.take(additions)
                except sqlite3.Error as error:  # it is taken when there is room again
                    log.error("no request can be taken: %s", error)
                    self._wake.wait(PAUSE)
                    continue
                if task is None:
                    self._wake.wait()
                    continue
            self._work(task)

    def _work(self, task: Task) -> None:
        begun = time.perf_counter()

        def report(stage: str, done: int, total: int) -> None:
            self._progress[task.id] = WorkStage(stage, done, total)

        answer, error, status = None, "", 200
        try:
            answer = self._answer(task, report)
        except UserError as said:
            error, status = str(said), getattr(said, "status", 422)
        except Exception as said:  # one request must not end the server
            error, status = "there is not enough memory for it here: send a smaller picture", 413
            if not out_of_memory(said):
                log.exception("request %s failed", task.id)
                error, status = f"the server failed at it ({type(said).__name__}): see its log", 500
        seconds = time.perf_counter() - begun
        self._finish(task, answer, error, status)
        self._progress.pop(task.id, None)
        if task.kind != ADDITION:
            self._seconds.append(seconds)
        self._metrics.finished(task.kind, answer, seconds)
        with self._wake:
            for loop, event in self._waiting.pop(task.id, []):
                loop.call_soon_threadsafe(event.set)

    def _finish(self, task: Task, answer: dict[str, Any] | None, error: str, status: int) -> None:
        """Keep the answer, as soon as it can be written; a server that ends begins the request again at its next start."""
        while True:
            try:
                return self._store.finish(task.id, answer, error, status)
            except sqlite3.Error as problem:
                log.error("the answer of request %s cannot be kept: %s", task.id, problem)
            with self._wake:
                if self._ended:
                    return
                self._wake.wait(PAUSE)
