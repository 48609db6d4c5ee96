"""Progress of a loop: a bar on a terminal, otherwise a line in the log from time to time. The only module that uses tqdm."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from collections.abc import Iterable, Sized
from typing import Any

from tqdm import tqdm

SECONDS = 30.0  # between two lines of a log

log = logging.getLogger(__name__)


def progress(
    items: Iterable[Any] | None, label: str, unit: str, total: int | None = None, done: int = 0, show: bool = True
) -> Progress:
    """Wraps `items`, or counts with `update()`; `done` of the `total` were done before.

    Nothing is shown if the logger `pdc_sfm` is set above INFO.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    quiet = not show or total == 0 or logging.getLogger("pdc_sfm").level > logging.INFO
    return Progress(items, label, unit, total, done, quiet)


class Progress(tqdm):
    """tqdm whose lines go to the log: at INFO where there is no terminal to draw a bar on, else at DEBUG beside it."""

    def __init__(self, items: Any, label: str, unit: str, total: int | None, done: int, quiet: bool):
        self._draws, self._said, self._ending = _is_terminal(sys.stderr), -SECONDS, False
        file: Any = sys.stderr if self._draws else io.StringIO()
        super().__init__(items, label, total, unit=unit, initial=done, disable=quiet, smoothing=0.1, file=file)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        if self._draws:
            super().display(msg, pos)
        now = time.monotonic()
        if self._ending or (now - self._said >= SECONDS and self.n != self.total):  # the end is said once
            self._said = now
            log.log(logging.DEBUG if self._draws else logging.INFO, "%s", self.line())

    def close(self) -> None:
        self._ending = True
        super().close()

    def tell(self, what: str) -> None:
        """One more is done: `what`."""
        self.set_postfix_str(what[-40:], refresh=False)
        self.update()

    def line(self) -> str:
        """What a log says: count, rate, time left or taken."""
        seconds = self.format_dict["elapsed"]
        units = f"{self.unit[:-1]}ies" if self.unit.endswith("y") else f"{self.unit}s"
        text = f"{self.desc}: {self.n:,}{'' if self.total is None else f' of {self.total:,}'} {units}"
        done = self.n - self.initial
        if done > 0 and seconds > 0:
            rate = done / seconds
            text += f", {rate:.1f} a second" if rate >= 0.95 else f", {1 / rate:.1f} s each"
            if self._ending:
                text += f", in {self.format_interval(seconds)}"
            elif self.total is not None:
                text += f", {self.format_interval((self.total - self.n) / rate)} left"
        return text + (f", {self.postfix}" if self.postfix else "")


def _is_terminal(stream: Any) -> bool:
    """Whether a bar can be drawn: a terminal with a width. Some (of CI, of editors) say that they have none."""
    try:
        return stream.isatty() and os.get_terminal_size(stream.fileno()).columns > 0
    except (AttributeError, OSError, ValueError):
        return False
