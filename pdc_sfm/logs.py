"""Log handlers: to the screen and to the file of a run. Only commands call this; importing installs no handler."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from tqdm import tqdm

LOGGER = logging.getLogger("pdc_sfm")


class _Screen(logging.Handler):
    """stderr as it is at the moment, above the bars that are drawn there."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            tqdm.write(self.format(record), file=sys.stderr)
        except (OSError, ValueError):  # nobody reads any more
            self.handleError(record)


class _RunFile(logging.FileHandler):
    """A file whose folder is made with the first line: a command that refuses its input leaves nothing behind."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()


@contextmanager
def screen_log(quiet: bool = False) -> Iterator[None]:
    """Messages of the package to stderr, as plain lines; `quiet`: only warnings, and no progress."""
    handler = _Screen(logging.WARNING if quiet else logging.INFO)
    with _installed(handler, logging.WARNING if quiet else logging.DEBUG):
        yield


@contextmanager
def run_log(path: Path | str) -> Iterator[None]:
    """Messages of the package, with the time, appended to the log of a run; also why it ended early."""
    handler = _RunFile(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("{asctime} {message}", "%Y-%m-%d %H:%M:%S", style="{"))
    with _installed(handler, LOGGER.level):
        try:
            yield
        except BaseException as error:
            if handler.stream is not None:
                LOGGER.debug("ended early: %s", " ".join(f"{type(error).__name__}: {error}".split()))
            raise


@contextmanager
def _installed(handler: logging.Handler, level: int) -> Iterator[None]:
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(level)
    try:
        yield
    finally:
        LOGGER.setLevel(before)
        LOGGER.removeHandler(handler)
        handler.close()
