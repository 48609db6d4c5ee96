"""Progress bars, where someone watches: none in log files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress(items: Iterable[Any] | None, label: str, unit: str, total: int | None = None, done: int = 0) -> tqdm:
    """A bar over items, or (None) one that is moved by hand."""
    return tqdm(items, label, total, unit=unit, initial=done, disable=None)  # None: off unless stderr is a terminal
