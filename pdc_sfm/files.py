"""Atomic writing: a crash leaves the old file or the new one, never a partial one. And locks."""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from pdc_sfm.errors import BusyError, StorageError, UserError


@contextlib.contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is flushed to disk and renamed, on error removed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.touch()
        mode = (
            partial.stat().st_mode
        )  # as the user's umask has it: some writers make files that only their owner can read
        partial.unlink()
        yield partial
        os.chmod(partial, mode)
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
        _flush_folder(path.parent)
    except OSError as error:
        if error.filename is None:  # a write that finds no room does not say where
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def _flush_folder(path: Path) -> None:
    """Let the new name survive a power cut too, where the system can be asked for it."""
    if os.name == "nt":  # folders cannot be opened there
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_leftovers(*paths: Path) -> None:
    """Remove what killed processes left of unfinished files. The caller holds the lock of these files."""
    for path in paths:
        for partial in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
            partial.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file at once or not at all."""
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def atomic_folder(path: Path | str, marker: str) -> Iterator[Path]:
    """Yield an empty folder beside `path`; on success its content takes the place of the same names in `path`.

    Other files in `path` are left alone. `marker`, a file of the content, is removed first and comes last: while it is
    there, all the rest belongs together. Hold the lock of `path` (`exclusive`) meanwhile.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
    partial.mkdir()
    try:
        with _full_disk_said(partial, path):
            yield partial
        if not path.exists():
            os.rename(partial, path)
            return
        (path / marker).unlink(missing_ok=True)
        for entry in sorted(partial.iterdir(), key=lambda entry: entry.name == marker):
            target = path / entry.name
            if target.is_dir():
                shutil.rmtree(target)
            os.replace(entry, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder at once or not at all: what a kill left of it would be taken for whole."""
    gone = path.with_name(f".{path.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)  # of a run that was killed
    os.replace(path, gone)
    shutil.rmtree(gone)


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin where the disk has less room than this: for libraries that do not survive a full disk."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StorageError(
            f"there is room for {free / 1e6:.0f} MB in {folder}, and {needed / 1e6:.0f} MB may be needed: make room and run "
            "the same command again"
        )


@contextlib.contextmanager
def _full_disk_said(folder: Path, output: Path) -> Iterator[None]:
    """Libraries report a full disk in any words; whether it is one shows when something is written."""
    try:
        yield
    except UserError:
        raise
    except Exception:
        try:
            probe = folder / ".probe"
            probe.write_bytes(bytes(1 << 16))
            probe.unlink()
        except OSError as error:
            raise StorageError(
                f"cannot write {output}: {error.strerror}; make room and run the same command again"
            ) from None
        raise


@contextlib.contextmanager
def exclusive(path: Path | str, wait: bool = False) -> Iterator[None]:
    """Hold the lock of an output. A second process waits, or is refused. The lock dies with its owner."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        if not os.path.exists(lock.lock_file):
            raise StorageError(f"nothing can be written in {path.parent}: choose another output") from None
        raise BusyError(f"another process is writing {path}: wait for it, or choose another output") from None
    try:
        yield
    finally:
        lock.release()


def file_digest(path: Path | str) -> str:
    """A short fingerprint of a file's content."""
    path = Path(path)
    found = path.stat()
    return _file_digest(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(256)
def _file_digest(path: Path, _size: int, _time: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:16]
