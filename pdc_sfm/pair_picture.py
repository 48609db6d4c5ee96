"""Draws a matched pair: matches, flow, confidence, and the query warped to the reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.images import fitted_size, resize_image
from pdc_sfm.matches.select import subsample_spatially
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pictures import flow_to_color, heat, match_lines, sample_image, tile, tint
from pdc_sfm.pixels import rescale

UNRELIABLE = (220, 30, 40)
LONGEST = 480  # pixels of an image's longer side in the picture
GAP = 4


@dataclass(frozen=True)
class PairPanels:
    """What there is to see of a pair, each an RGB picture, and the figures of its captions."""

    matches: np.ndarray  # both images side by side with lines between
    flow: np.ndarray
    confidence: np.ndarray
    warped: np.ndarray  # image 1 as image 0 sees it, unreliable regions in red
    drawn: int  # lines
    largest: float  # length of the flow at full color, pixels of the picture
    confident: float  # share of image 0 with confidence above the threshold


def pair_panels(
    image0: np.ndarray,
    image1: np.ndarray,
    matches: RawMatches,
    forward: DenseEstimate,
    *,
    radius: float = 1.0,
    threshold: float = 0.1,
    lines: int = 150,
    longest: int = LONGEST,
    width: int | None = None,
) -> PairPanels:
    """Images (H, W, 3) uint8 and what was found between them -> pictures. image0 is the reference.

    `longest` is the longer side of a panel, `width` that of the picture of matches (as wide as three panels).
    """
    seen0, seen1 = (fitted_size(i.shape[1::-1], max_side=longest) for i in (image0, image1))
    estimate = forward.resampled(seen0)
    confidence = estimate.confidence_within(radius)
    reliable = estimate.valid & (confidence > threshold)
    there = rescale(estimate.query_points, forward.query_size, seen1)
    flow = there - rescale(estimate.reference_points, forward.reference_size, seen0)
    largest = float(np.percentile(np.linalg.norm(flow[reliable if reliable.any() else ...], axis=-1), 98))
    warped = np.where(estimate.valid[..., None], sample_image(resize_image(image1, seen1), there), 0)
    few = subsample_spatially(matches, lines, forward.reference_size)
    return PairPanels(
        match_picture(image0, image1, few, width or 3 * seen0[0] + 4 * GAP),
        flow_to_color(flow, largest),
        heat(np.where(estimate.valid, confidence, np.nan)),
        tint(warped, ~reliable, UNRELIABLE),
        len(few),
        largest,
        float(reliable.mean()),
    )


def pair_picture(
    image0: np.ndarray,
    image1: np.ndarray,
    matches: RawMatches,
    forward: DenseEstimate,
    *,
    radius: float = 1.0,
    threshold: float = 0.1,
    lines: int = 150,
) -> np.ndarray:
    """The panels of a pair on one sheet with captions."""
    panels = pair_panels(image0, image1, matches, forward, radius=radius, threshold=threshold, lines=lines)
    lower = tile(
        [[panels.flow, panels.confidence, panels.warped]],
        [
            f"flow: {forward.method} (full color {panels.largest:.0f} px)",
            "confidence: red 0 ... green 1",
            f"image 1 warped; red: confidence <= {threshold:g} or out of view",
        ],
    )
    share = 100 * panels.confident
    head = f"{len(matches)} matches, {panels.drawn} drawn; {share:.0f} % of image 0 is confidently matched"
    return tile([[tile([[panels.matches]], [head], gap=0)], [lower]], gap=0)


def match_picture(image0: np.ndarray, image1: np.ndarray, matches: RawMatches, width: int) -> np.ndarray:
    """The images side by side at one height, their matches colored by confidence, the surest drawn last."""
    originals = [image.shape[1::-1] for image in (image0, image1)]
    height = min((width - 3 * GAP) / sum(w / h for w, h in originals), 1.5 * LONGEST)
    sizes = [(max(1, int(height * w / h)), max(1, int(height))) for w, h in originals]
    matches = matches.select(np.argsort(matches.scores))
    points = [rescale(p, *s) for p, *s in zip((matches.keypoints0, matches.keypoints1), originals, sizes)]
    colors = heat(matches.scores[:, None])[:, 0]
    small = [resize_image(image, size) for image, size in zip((image0, image1), sizes)]
    return match_lines(small[0], small[1], points[0], points[1], colors, GAP)
