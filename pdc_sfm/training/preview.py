"""A sheet of training pairs, to be looked at before hours are spent on them."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from pdc_sfm.pictures import flow_to_color, gray, tile, write
from pdc_sfm.synthetic.pairs import SyntheticPair
from pdc_sfm.synthetic.warps import ImageFrame

CAPTIONS = ("reference", "query", "flow", "loss mask", "visible", "query warped by flow", "difference (visible)")


def reconstruct(pair: SyntheticPair) -> np.ndarray:
    """The query warped by the flow: what the reference shows, wherever it is visible. (H, W, 3) uint8."""
    points = ImageFrame(*pair.flow.shape[:2]).grid() + pair.flow
    return cv2.remap(pair.query, points, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=(0, 0, 0))


def sheet(pairs: Iterable[SyntheticPair]) -> np.ndarray:
    """One row a pair: its images, ground truth and reconstruction."""
    rows = []
    for pair in pairs:
        warped = reconstruct(pair)
        apart = np.abs(pair.reference.astype(np.int16) - warped).astype(np.uint8) * pair.visible[..., None]
        flow = flow_to_color(pair.flow)
        note = "unrelated" if pair.unrelated else f"up to {np.hypot(*np.moveaxis(pair.flow, -1, 0)).max():.0f} px"
        write(flow, note, (6, flow.shape[0] - 8))
        rows.append([pair.reference, pair.query, flow, gray(pair.mask), gray(pair.visible), warped, apart])
    return tile(rows, CAPTIONS)
