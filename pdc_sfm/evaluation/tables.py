"""Results as text tables and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.files import write_text


def percent(value: float | None, digits: int = 1) -> str:
    """A share in 0..1 as per cent; nothing known is a dash."""
    return number(None if value is None else 100 * value, digits)


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many decimals; nothing known is a dash."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Columns as wide as their content, the first to the left, the others to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[c]) for line in lines if c < len(line)) for c in range(len(head))]
    texts = [
        "  ".join(cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    ]
    texts.insert(1, "-" * max(len(text) for text in texts))
    return "\n".join([title, *texts] if title else texts)


def write_json(path: Path, content: Any) -> None:
    """JSON that every reader takes: what is not a finite number becomes null."""
    write_text(path, json.dumps(_plain(content), indent=1) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
