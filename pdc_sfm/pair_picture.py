"""One matched pair as a picture: matches, flow, confidence, and the query seen from the reference."""

from __future__ import annotations

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.images import fitted_size, resize_image
from pdc_sfm.matches.select import highest_p_r, spread
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pictures import flow_to_colour, heat, match_lines, sample_image, tile, tint
from pdc_sfm.pixels import rescale

UNRELIABLE = (220, 30, 40)
LONGEST = 480  # pixels of an image's longer side in the picture
GAP = 4


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
    """Images (H, W, 3) uint8 and what was found between them -> one RGB picture. image0 is the reference."""
    top = highest_p_r(radius)
    seen0, seen1 = (fitted_size(i.shape[1::-1], max_side=LONGEST) for i in (image0, image1))
    estimate = forward.resampled(seen0)
    confidence = estimate.confidence(radius)
    reliable = estimate.valid & (confidence > threshold)
    there = rescale(estimate.query_points, forward.query_size, seen1)
    flow = there - rescale(estimate.reference_points, forward.reference_size, seen0)
    largest = float(np.percentile(np.linalg.norm(flow[reliable if reliable.any() else ...], axis=-1), 98))
    warped = np.where(estimate.valid[..., None], sample_image(resize_image(image1, seen1), there), 0)
    lower = tile(
        [
            [
                flow_to_colour(flow, largest),
                heat(np.where(estimate.valid, confidence / top, np.nan)),
                tint(warped, ~reliable, UNRELIABLE),
            ]
        ],
        [
            f"flow: {forward.method} (full colour {largest:.0f} px)",
            f"P_{radius:g}: red 0 ... green {top:.2f}",
            f"image 1 warped; red: P_{radius:g} <= {threshold:g} or out of view",
        ],
    )
    few = spread(matches, lines, forward.reference_size)
    drawn = _matches(image0, image1, few, top, lower.shape[1])
    head = f"{len(matches)} matches, {len(few)} drawn; {100 * reliable.mean():.0f} % of image 0 is confidently matched"
    return tile([[tile([[drawn]], [head], gap=0)], [lower]], gap=0)


def _matches(image0: np.ndarray, image1: np.ndarray, matches: RawMatches, top: float, width: int) -> np.ndarray:
    """The images side by side at one height, their matches coloured by confidence, the surest drawn last."""
    originals = [image.shape[1::-1] for image in (image0, image1)]
    height = min((width - 3 * GAP) / sum(w / h for w, h in originals), 1.5 * LONGEST)
    sizes = [(max(1, int(height * w / h)), max(1, int(height))) for w, h in originals]
    matches = matches.select(np.argsort(matches.scores))
    points = [rescale(p, *s) for p, *s in zip((matches.keypoints0, matches.keypoints1), originals, sizes)]
    colours = heat(matches.scores[:, None] / top)[:, 0]
    small = [resize_image(image, size) for image, size in zip((image0, image1), sizes)]
    return match_lines(*small, *points, colours, GAP)
