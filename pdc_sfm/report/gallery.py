"""Pairs to look at: both images, matches, flow, confidence, and the second image warped onto the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pdc_sfm.errors import UserError
from pdc_sfm.images import fitted_size, resize_image
from pdc_sfm.matches.select import subsample_spatially
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pair_picture import match_picture, pair_panels
from pdc_sfm.pictures import flow_to_color, tint
from pdc_sfm.report.html import Section, data_uri, figure, text
from pdc_sfm.report.run_data import Missing, Run

if TYPE_CHECKING:
    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.matcher import Matcher

SIDE = 480  # pixels of an image's longer side
WIDE = 1240  # of the picture with the lines
MASKED = (128, 128, 128)


@dataclass(frozen=True)
class ShownPair:
    """A pair with its estimates, which the comparison with the truth uses again."""

    names: tuple[str, str]
    why: str
    matches: RawMatches
    forward: DenseEstimate | None
    backward: DenseEstimate | None


def choose_pairs(run: Run, count: int) -> list[tuple[tuple[str, str], str]]:
    """Pairs from the richest to the poorest, and of each kind of query the pair with its best image; with the reason."""
    chosen: dict[tuple[str, str], str] = {}
    queries: list[tuple[tuple[str, str], str]] = []
    try:
        store = run.raw_queries
        groups: dict[str, tuple[str, str]] = {}
        for pair in store.pairs():
            group = pair[0].split("/")[0]
            if group not in groups or store.count(pair) > store.count(groups[group]):
                groups[group] = pair
        queries = [(pair, f"{group} query with its best image") for group, pair in groups.items()]
    except Missing:
        pass  # a run without queries
    ranked = sorted(run.raw.pairs(), key=run.raw.count, reverse=True)
    wanted = max(count - len(queries), 1)
    for k, place in enumerate(np.linspace(0, len(ranked) - 1, min(wanted, len(ranked))).round().astype(int)):
        why = "most matches" if k == 0 else "fewest matches" if place == len(ranked) - 1 else f"place {place + 1}"
        chosen[ranked[place]] = f"{why} of {len(ranked)} pairs"
    return [*chosen.items(), *queries][:count]


def load_shown(run: Run, count: int, matcher: Matcher | None) -> list[ShownPair]:
    """The chosen pairs, matched again for their dense maps if there is a matcher."""
    shown = []
    for names, why in choose_pairs(run, count):
        store = run.raw if names in run.raw else run.raw_queries
        forward = backward = None
        if matcher is not None:
            codes = [matcher.encode(run.image(name), name) for name in names]
            forward, backward = matcher.estimator.estimate_both(*codes)
        shown.append(ShownPair(names, why, store.read(names), forward, backward))
    return shown


def gallery(run: Run, shown: list[ShownPair], missing: str | None, settings: dict[str, Any]) -> Section:
    """All chosen pairs."""
    if not shown:
        raise Missing("matches.raw holds no pair")
    section = Section("pairs", "Pairs", missing=[missing] if missing else [])
    select = settings.get("select", {})
    radius, threshold = float(select.get("radius", 1.0)), float(select.get("threshold", 0.1))
    if any(pair.forward is not None for pair in shown):
        section.content += _key(radius, threshold)
    for pair in shown:
        try:
            section.content += _article(run, pair, radius, threshold)
        except UserError as error:
            section.missing.append(str(error))
    return section


def _article(run: Run, pair: ShownPair, radius: float, threshold: float) -> str:
    seen = [masked_image(run, name) for name in pair.names]
    images = [image for image, _ in seen]
    covered = [f"; {100 * share:.0f} % masked, in gray" if share else "" for _, share in seen]
    captions = [f"image {k}: {name}{covered[k]}" for k, name in enumerate(pair.names)]
    small = [resize_image(image, fitted_size(image.shape[1::-1], max_side=SIDE)) for image in images]
    figures = [figure(image, caption) for image, caption in zip(small, captions)]
    said = f"{len(pair.matches):,} dense matches; {pair.why}"
    if pair.forward is not None and pair.forward.log_var is not None:
        panels = pair_panels(
            images[0],
            images[1],
            pair.matches,
            pair.forward,
            radius=radius,
            threshold=threshold,
            longest=SIDE,
            width=WIDE,
        )
        said += f"; {100 * panels.confident:.0f} % of image 0 is confidently matched"
        lined = panels.matches
        figures += [
            figure(panels.flow, f"flow by {pair.forward.method}, full color at {panels.largest:.0f} px"),
            figure(panels.confidence, "confidence: red 0, green 1"),
            figure(panels.warped, f"image 1 warped onto image 0; red: confidence ≤ {threshold:g} or out of view"),
        ]
    else:
        size = images[0].shape[1::-1]
        few = subsample_spatially(pair.matches, 150, size)
        lined = match_picture(images[0], images[1], few, WIDE)
    head = f"<h3>{text(pair.names[0])} <span>and</span> {text(pair.names[1])}</h3><p class=note>{text(said)}</p>"
    lines = figure(lined, "matches, the surer the greener")
    return f'<article class="pair">{head}<div class="lines">{lines}</div><div class="panels">{"".join(figures)}</div></article>'


def masked_image(run: Run, name: str) -> tuple[np.ndarray, float]:
    """An image with what its mask covers in gray, and the share of it."""
    image = run.image(name)
    covers = run.masks.covers(name) if run.masks is not None else None
    if covers is None or covers.shape != image.shape[:2]:
        return image, 0.0
    return tint(image, covers, MASKED), float(covers.mean())


def _key(radius: float, threshold: float) -> str:
    """What the colors mean."""
    wheel = f'<img class="wheel" width="96" height="96" alt="color wheel" src="{data_uri(color_wheel(), 95)}">'
    return (
        f'<div class="key"><figure>{wheel}<figcaption>flow: the color is the direction in which a point moves from image 0 '
        "to image 1, as seen from the center of the wheel; the stronger, the further</figcaption></figure>"
        f'<figure><div class="heat"></div><figcaption>confidence, the probability of an error below {radius:g} px '
        f"of the network's input: 0 (red) to 1 (green); above {threshold:g} a point is a match"
        "</figcaption></figure></div>"
    )


def color_wheel(side: int = 192) -> np.ndarray:
    """The key of the flow's colors on white."""
    y, x = (np.mgrid[:side, :side] - (side - 1) / 2) / (side / 2)
    wheel = flow_to_color(np.stack([x, y], -1), 1.0)
    return np.where((np.hypot(x, y) <= 1)[..., None], wheel, 255).astype(np.uint8)
