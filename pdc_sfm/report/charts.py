"""Charts as SVG in the colors of the page: histograms, lines, and errors on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pdc_sfm.report.html import text

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 10, 40  # left: a name, then ticks of up to five figures (12.5k); right: half of one
COLORS = ("var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)")
DASHES = ("", "7 4", "10 4 2 4", "2 3")


Values = Sequence[float] | np.ndarray


def histogram(values: Sequence[float], xlabel: str, ylabel: str, bins: int = 20, whole: bool = False) -> str:
    """How often values occur; `whole`: one bar for each whole number up to where 99 % lie."""
    found, last = np.asarray(values, float), 0
    if whole:
        last = int(max(np.quantile(found, 0.99), found.min() + 3))
        edges = np.arange(found.min(), last + 2) - 0.5
        counts = np.histogram(np.minimum(found, last), edges)[0]
    else:
        counts, edges = np.histogram(found, bins, (0, max(float(found.max()), 1.0)))
    top = _nice_top(counts.max())
    plot = _Plot((edges[0], edges[-1]), (0, top), xlabel, ylabel)
    for count, low, high in zip(counts, edges, edges[1:]):
        x0, x1, y = plot.x(low), plot.x(high), plot.y(count)
        label = f"{(low + high) / 2:.0f}" if whole else f"{low:,.0f} to {high:,.0f}"
        if whole and high > edges[-1] - 0.5 and found.max() > last:
            label += " or more"
        place = f'x="{x0 + 1:.1f}" y="{y:.1f}" width="{max(x1 - x0 - 2, 1):.1f}" height="{plot.y(0) - y:.1f}"'
        plot.add(f'<rect {place} fill="{COLORS[0]}"><title>{text(label)}: {count:,}</title></rect>')
    return plot.svg()


def lines(curves: Mapping[str, tuple[Values, Values]], xlabel: str, ylabel: str, top: float | None = None) -> str:
    """Named curves (x, y) with a legend."""
    highest = top or _nice_top(max(max(y) for _, y in curves.values()))
    right = max(max(x) for x, _ in curves.values())
    plot = _Plot((0, right), (0, highest), xlabel, ylabel, head=16 * math.ceil(len(curves) / 2))
    for number, (name, (x, y)) in enumerate(curves.items()):
        path = " ".join(f"{plot.x(a):.1f},{plot.y(b):.1f}" for a, b in zip(x, y))
        style = f'stroke="{COLORS[number % 4]}" stroke-dasharray="{DASHES[number % 4]}" stroke-width="2" fill="none"'
        plot.add(f'<polyline points="{path}" {style}/>')
        left, at = LEFT + 195 * (number % 2), 12 + 16 * (number // 2)
        plot.add(f'<line x1="{left}" x2="{left + 26}" y1="{at - 4}" y2="{at - 4}" {style}/>')
        plot.add(f'<text x="{left + 32}" y="{at}">{text(name)}</text>')
    return plot.svg()


def dots(
    rows: Mapping[str, Mapping[str, float | None]], xlabel: str, marks: Sequence[float], least: float = 0.01
) -> str:
    """A row for each name with a dot for each method on a logarithmic axis; None: no result, drawn at the right end.

    `marks` are thresholds, drawn as upright lines.
    """
    methods = list(dict.fromkeys(method for values in rows.values() for method in values))
    known = [v for values in rows.values() for v in values.values() if v is not None]
    low = math.floor(math.log10(max(min([*known, *marks, 0.1]), least)))
    high = math.ceil(math.log10(max([*known, *marks, 1.0])))
    left, step, width = 112, 20, WIDTH
    height = TOP + 18 + step * len(rows) + BOTTOM

    def x(value: float | None) -> float:
        if value is None:
            return width - 26
        part = (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return left + part * (width - 70 - left)

    parts = []
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP + 18}" y2="{height - BOTTOM}" class="grid"/>')
        parts.append(f'<text x="{at:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for mark in marks:
        parts.append(
            f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP + 18}" y2="{height - BOTTOM}" class="mark"/>'
        )
    parts.append(f'<text x="{x(None)}" y="{height - BOTTOM + 16}" text-anchor="middle">none</text>')
    parts.append(f'<text x="{(left + width - 70) / 2}" y="{height - 6}" text-anchor="middle">{text(xlabel)}</text>')
    for number, method in enumerate(methods):
        at = left + 90 * number
        parts.append(f'<circle cx="{at}" cy="{TOP + 2}" r="5" fill="{COLORS[number]}"/>')
        parts.append(f'<text x="{at + 10}" y="{TOP + 6}">{text(method)}</text>')
    for row, (name, values) in enumerate(rows.items()):
        y = TOP + 18 + step * (row + 0.5)
        parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y}" y2="{y}" class="grid"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{text(_short(name))}</text>')
        for method in reversed(methods):  # the first method is drawn last, on top
            if method not in values:
                continue
            value, number = values[method], methods.index(method)
            said = "no pose" if value is None else f"{value:.3g}"
            hollow = f'fill="var(--card)" stroke="{COLORS[number]}" stroke-width="2"'
            fill = f'fill="{COLORS[number]}"' if value is not None else hollow
            offset = 0 if value is not None else 8 * number
            parts.append(
                f'<circle cx="{x(value) + offset:.1f}" cy="{y}" r="5" {fill}>'
                f"<title>{text(name)}, {text(method)}: {said}</title></circle>"
            )
    return _svg(width, height, parts)


class _Plot:
    """Axes with ticks; `x` and `y` place values."""

    def __init__(self, xs: tuple[float, float], ys: tuple[float, float], xlabel: str, ylabel: str, head: int = 0):
        self.xs, self.ys, self.top = xs, ys, TOP + head
        self.parts: list[str] = []
        for value in _ticks(*ys):
            at = self.y(value)
            self.add(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
            self.add(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_figure(value)}</text>')
        for value in _ticks(*xs):
            self.add(
                f'<text x="{self.x(value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_figure(value)}</text>'
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        self.add(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{text(xlabel)}</text>')
        half = (self.top + HEIGHT - BOTTOM) / 2
        self.add(f'<text transform="translate(11 {half}) rotate(-90)" text-anchor="middle">{text(ylabel)}</text>')

    def x(self, value: float) -> float:
        return LEFT + (value - self.xs[0]) / (self.xs[1] - self.xs[0]) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.ys[0]) / (self.ys[1] - self.ys[0]) * (HEIGHT - self.top - BOTTOM)

    def add(self, part: str) -> None:
        self.parts.append(part)

    def svg(self) -> str:
        return _svg(WIDTH, HEIGHT, self.parts)


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return f'<svg class="chart" viewBox="0 0 {width} {height}" role="img">{"".join(parts)}</svg>'


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw)
    if high - low > 4:
        step = max(1.0, round(step))
    return [step * k for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def _nice_top(value: float) -> float:
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * m for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * m >= value)


def _figure(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:g}" if value != 0 else "0"


def _short(name: str, most: int = 16) -> str:
    return name if len(name) <= most else "…" + name[1 - most :]
