"""Matches per pair, track lengths, and the pair graph."""

from __future__ import annotations

import math

import numpy as np

from pdc_sfm.colmap.io.models import model_poses
from pdc_sfm.evaluation.measures.poses import camera_center
from pdc_sfm.report.charts import histogram
from pdc_sfm.report.html import Section, text
from pdc_sfm.report.model3d import upright
from pdc_sfm.report.run_data import Missing, Run
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs
from pdc_sfm.store.readers import open_matches

MOST_EDGES = 3000
MOST_LABELS = 60
MOST_SPREAD = 300  # images that are drawn apart from each other
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
    counts = list(_counts(run).values())
    if not counts:
        raise Missing("pairs.txt lists no pair")
    empty = sum(count == 0 for count in counts)
    said = (
        f"{len(counts)} pairs, {sum(counts):,} matches between keypoints; median {np.median(counts):,.0f} a pair, "
        f"{empty} without any. Dense matches, which the pairs below show, become these by joining keypoints to tracks."
    )
    chart = histogram(counts, "matches of a pair", "pairs")
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
    counts = _counts(run)
    names = sorted({name for pair in counts for name in pair})
    numbered = len(names) <= MOST_LABELS
    places, how = _places(run, names, 24.0 if numbered else 12.0)
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
    for number, name in enumerate(names, start=1):
        x, y = places[name]
        title = f"<title>{text(name)}</title>"
        parts.append(f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="{11 if numbered else 5}">{title}</circle>')
        if numbered:
            parts.append(
                f'<text class="number" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{number}{title}</text>'
            )
    said = f"{len(counts)} pairs of {len(names)} images, {how}; the stronger a line, the more matches"
    svg = f'<svg class="chart" viewBox="0 0 {SIDE} {SIDE * 0.72:.0f}" role="img">{"".join(parts)}</svg>'
    listed = f'<ol class="names">{"".join(f"<li>{text(name)}</li>" for name in names)}</ol>' if numbered else ""
    return f'<figure class="wide">{svg}<figcaption>{text(said)}</figcaption>{listed}</figure>'


def _counts(run: Run) -> dict[tuple[str, str], int]:
    """Matches of each pair as the model was made of them, and as the step says; of a run without these, dense ones."""
    if not (run.folder / "pairs.txt").is_file():
        raise Missing("pairs.txt is not there")
    pairs = unique_pairs(read_pairs(run.folder / "pairs.txt"))
    if (run.folder / "matches.h5").is_file():
        with open_matches(run.folder / "matches.h5") as file:
            return {pair: len(file.matches(*pair)[0]) if pair in file else 0 for pair in pairs}
    try:
        store = run.raw
    except Missing:
        return dict.fromkeys(pairs, 0)
    return {pair: next((store.count(p) for p in (pair, pair[::-1]) if p in store), 0) for pair in pairs}


def _places(run: Run, names: list[str], apart: float) -> tuple[dict[str, tuple[float, float]], str]:
    """Where to draw each image: its camera seen from above, or a circle if not all cameras are known."""
    size, margin = np.array([SIDE, SIDE * 0.72]), 24
    try:
        poses = model_poses(run.model)
    except Missing:
        poses = {}
    if len(names) > 1 and sum(name in poses for name in names) > len(names) / 2:
        known = [name for name in names if name in poses]
        stacked = np.stack([poses[name] for name in known])
        flat = (camera_center(stacked) @ upright(stacked).T)[:, :2] * (1, -1)
        low, high = np.quantile(flat, (0.1, 0.9), axis=0)
        flat = np.clip(flat, low - (high - low) / 2, high + (high - low) / 2)  # far ones would draw the others together
        extent = np.maximum(np.ptp(flat, axis=0), 1e-9)
        xy = (flat - (flat.min(0) + flat.max(0)) / 2) * ((size - 2 * margin) / extent).min() + size / 2
        lost = [name for name in names if name not in poses]
        row = [(margin + apart * k, size[1] - margin) for k in range(len(lost))]
        xy = spread_out(np.concatenate([xy, np.reshape(row, (-1, 2))]), apart, margin, size)
        how = "about where the cameras stand, seen from above"
        how += f" ({len(lost)} that the model lacks at the lower edge)" if lost else ""
        return {name: tuple(at) for name, at in zip([*known, *lost], xy)}, how
    angles = 2 * np.pi * np.arange(len(names)) / len(names) - np.pi / 2
    circle = size / 2 + (size[1] / 2 - margin) * np.stack([np.cos(angles), np.sin(angles)], 1)
    return {name: tuple(at) for name, at in zip(names, circle)}, "in a circle, in the order of names"


def spread_out(places: np.ndarray, apart: float, margin: float, size: np.ndarray, rounds: int = 200) -> np.ndarray:
    """Move places (N, 2) until they stand apart: each two that are too near push each other, inside the margin."""
    places = places + np.random.default_rng(0).uniform(-0.01, 0.01, places.shape)  # two in one place must part
    for _ in range(rounds if len(places) <= MOST_SPREAD else 0):
        between = places[:, None] - places[None]
        distances = np.linalg.norm(between, axis=-1)
        np.fill_diagonal(distances, np.inf)
        push = np.maximum(apart - distances, 0) / np.maximum(distances, 1e-9)
        if not push.any():
            break
        places = np.clip(places + (push[..., None] * between).sum(1) / 2, margin, size - margin)
    return places
