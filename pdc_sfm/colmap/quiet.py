"""COLMAP's own log lines, shown only on request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pycolmap


@contextlib.contextmanager
def colmap_log(verbose: bool = False) -> Iterator[None]:
    """Let COLMAP write to stderr if `verbose`, else only what is fatal. The earlier level is restored."""
    level = pycolmap.logging.minloglevel
    pycolmap.logging.minloglevel = int(pycolmap.logging.Level.INFO if verbose else pycolmap.logging.Level.FATAL)
    try:
        yield
    finally:
        pycolmap.logging.minloglevel = level
