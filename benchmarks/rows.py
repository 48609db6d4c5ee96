"""Rows of the one table of `benchmarks/run.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class Skip(Exception):
    """A step that cannot be taken here; the message says why and what to do."""


@dataclass(frozen=True)
class Row:
    """One figure. A `times` ratio above 1 means that ours is better; below 1 ours loses, and the table says so."""

    part: str
    what: str
    ratio: float | None  # None: a figure without a ratio
    ours: str
    against: str = ""
    note: str = ""
    kind: Literal["times", "share", "slope"] = "times"

    @property
    def loses(self) -> bool:
        return self.kind == "times" and self.ratio is not None and self.ratio < 1

    @property
    def ratio_text(self) -> str:
        if self.ratio is None:
            return ""
        if self.kind == "share":
            return f"{100 * self.ratio:.1f} %" if self.ratio < 0.1 else f"{100 * self.ratio:.0f} %"
        if self.kind == "slope":
            return f"slope {self.ratio:.2f}"
        text = f"{self.ratio:.1f} x" if self.ratio >= 1 else f"{self.ratio:.2f} x"
        return f"**loses: {text}**" if self.loses else text


def seconds(value: float) -> str:
    """'3.2 s', '85 ms'."""
    return f"{value:.3g} s" if value >= 0.1 else f"{1000 * value:.3g} ms"
