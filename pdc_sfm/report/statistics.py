"""Matches per pair, track lengths, and the pair graph."""

from __future__ import annotations

import math

import numpy as np

from pdc_sfm.colmap.io.models import model_poses
from pdc_sfm.evaluation.poses import camera_center
from pdc_sfm.report.charts import histogram
from pdc_sfm.report.html import Section, text
from pdc_sfm.report.model3d import upright
from pdc_sfm.report.run_data import Missing, Run
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs

MOST_EDGES = 3000
MOST_LABELS = 60
SIDE = 620


def statistics(run: Run) -> Section:
    """Two histograms and the graph; each on its own may be missing."""
    section = Section("statistics", "Pairs and tracks")
    parts = []
    for make in (_matches, _tracks, _graph):
        try:
            parts.append(make(run))
        except Missing as missing:
            section.missing.append(str(missing))
    if not parts:
        raise Missing("; ".join(section.missing))
    section.content = f'<div class="grid2">{"".join(parts)}</div>'
    return section


def _matches(run: Run) -> str:
    counts = [run.raw.count(pair) for pair in run.raw.pairs()]
    if not counts:
        raise Missing("matches.raw holds no pair")
    empty = sum(count == 0 for count in counts)
    said = (
        f"{len(counts)} pairs, {sum(counts):,} raw matches; median {np.median(counts):,.0f} a pair, {empty} without any"
    )
    chart = histogram(counts, "raw matches of a pair", "pairs")
    return f"<figure>{chart}<figcaption>{text(said)}</figcaption></figure>"


def _tracks(run: Run) -> str:
    lengths = [point.track.length() for point in run.model.points3D.values()]
    if not lengths:
        raise Missing("the model has no points")
    longer = 100 * np.mean(np.array(lengths) > 2)
    said = (
        f"{len(lengths):,} points; mean length {np.mean(lengths):.2f}, {longer:.0f} % are seen by more than two images"
    )
    chart = histogram(lengths, "images that see a point (track length)", "points", whole=True)
    return f"<figure>{chart}<figcaption>{text(said)}</figcaption></figure>"


def _graph(run: Run) -> str:
    if not (run.folder / "pairs.txt").is_file():
        raise Missing("pairs.txt is not there")
    pairs = unique_pairs(read_pairs(run.folder / "pairs.txt"))
    counts = _counts(run, pairs)
    names = sorted({name for pair in pairs for name in pair})
    places, how = _places(run, names)
    most = max(max(counts.values(), default=0), 1)
    parts = []
    for (a, b), count in sorted(counts.items(), key=lambda item: item[1])[-MOST_EDGES:]:
        (x0, y0), (x1, y1) = places[a], places[b]
        strength = math.sqrt(count / most)
        style = f'stroke-width="{0.4 + 2.6 * strength:.2f}" stroke-opacity="{0.12 + 0.7 * strength:.2f}"'
        parts.append(
            f'<line class="edge" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" {style}>'
            f"<title>{text(a)}  {text(b)}: {count:,}</title></line>"
        )
    for name in names:
        x, y = places[name]
        parts.append(f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="6"><title>{text(name)}</title></circle>')
        if len(names) <= MOST_LABELS:
            label = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
            parts.append(f'<text x="{x:.1f}" y="{y - 10:.1f}" text-anchor="middle">{text(label[-10:])}</text>')
    said = f"{len(pairs)} pairs of {len(names)} images, {how}; the stronger a line, the more matches"
    svg = f'<svg class="chart" viewBox="0 0 {SIDE} {SIDE * 0.72:.0f}" role="img">{"".join(parts)}</svg>'
    return f'<figure class="wide">{svg}<figcaption>{text(said)}</figcaption></figure>'


def _counts(run: Run, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Raw matches of each pair; 0 where nothing is known."""
    try:
        store = run.raw
    except Missing:
        return dict.fromkeys(pairs, 0)
    done = set(store.pairs())
    return {
        (a, b): store.count((a, b)) if (a, b) in done else store.count((b, a)) if (b, a) in done else 0
        for a, b in pairs
    }


def _places(run: Run, names: list[str]) -> tuple[dict[str, tuple[float, float]], str]:
    """Where to draw each image: its camera seen from above, or a circle if not all cameras are known."""
    width, height, margin = SIDE, SIDE * 0.72, 34
    try:
        poses = model_poses(run.model)
    except Missing:
        poses = {}
    if len(names) > 1 and all(name in poses for name in names):
        stacked = np.stack([poses[name] for name in names])
        flat = (camera_center(stacked) @ upright(stacked).T)[:, :2] * (1, -1)
        extent = np.maximum(np.ptp(flat, axis=0), 1e-9)
        scale = min((width - 2 * margin) / extent[0], (height - 2 * margin) / extent[1])
        middle = (flat.min(0) + flat.max(0)) / 2
        xy = (flat - middle) * scale + (width / 2, height / 2)
        return {name: tuple(at) for name, at in zip(names, xy)}, "placed as the cameras stand, seen from above"
    angles = 2 * np.pi * np.arange(len(names)) / len(names) - np.pi / 2
    circle = np.stack(
        [width / 2 + (height / 2 - margin) * np.cos(angles), height / 2 + (height / 2 - margin) * np.sin(angles)], 1
    )
    return {name: tuple(at) for name, at in zip(names, circle)}, "in a circle, in the order of names"
