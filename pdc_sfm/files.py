"""Writing files so that a crash leaves the old file or the new one, never half of one; and locks."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from pdc_sfm.errors import BusyError


@contextlib.contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is flushed to disk and renamed to `path`, on error removed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file at once or not at all."""
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def exclusive(path: Path | str, wait: bool = False) -> Iterator[None]:
    """Hold the lock of an output. A second process waits, or is refused with a clear line. The lock dies with its owner."""
    path = Path(path)
    lock = path.with_name(f".{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise BusyError(f"another process is writing {path}: wait for it, or choose another output") from None
        yield
