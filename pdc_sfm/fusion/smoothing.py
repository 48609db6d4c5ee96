"""Planes that their neighbors agree on: a pixel's own plane errs alone, most of those around it do not err together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.fusion.patches import SIMILAR_GRAY

REACH, STEP = 4, 2  # pixels: 25 planes of the 9 x 9 around; patches of neighbors closer than that are the same pixels
NEAR = 0.01  # of inverse depth: planes that say the same
ROWS = 32  # at a time, which bounds memory


@dataclass(frozen=True)
class SmoothPlanes:
    """Inverse depth and its gradient, (h, w) each, and the share of the planes around that say so."""

    rho: np.ndarray
    gx: np.ndarray
    gy: np.ndarray
    support: np.ndarray


def smooth(rho: np.ndarray, gx: np.ndarray, gy: np.ndarray, agreement: np.ndarray, gray: np.ndarray) -> SmoothPlanes:
    """The mean of the planes around each pixel (h, w) that lie near their median, all weighted.

    By how well views agree with them, and by how alike the pixels are, which may lie on another surface otherwise.
    """
    weight = np.maximum(agreement, 0) ** 2 + 1e-3  # some, where no view agrees
    around = [np.pad(part, REACH, mode="edge") for part in (rho, gx, gy, weight, gray)]
    strips = [_strip(around, top, min(top + ROWS, len(rho))) for top in range(0, len(rho), ROWS)]
    return SmoothPlanes(*(np.concatenate(parts).astype(np.float32) for parts in zip(*strips)))


def _strip(around: list[np.ndarray], top: int, bottom: int) -> tuple[np.ndarray, ...]:
    """Of the rows from `top` to `bottom` of padded maps: inverse depth, gradient, support."""
    width = around[0].shape[1] - 2 * REACH
    offsets = range(-REACH, REACH + 1, STEP)
    steps = [(dx, dy) for dy in offsets for dx in offsets]

    def moved(part: np.ndarray, dx: int, dy: int) -> np.ndarray:
        return part[top + REACH + dy : bottom + REACH + dy, REACH + dx : REACH + dx + width]

    rho, gx, gy, weight, gray = (np.stack([moved(part, *step) for step in steps], -1) for part in around)
    own = gray[..., len(steps) // 2, None]
    weight = weight * np.exp(-np.abs(gray - own) / SIMILAR_GRAY)
    dx, dy = (np.array(axis, np.float32) for axis in zip(*steps))
    here = rho - gx * dx - gy * dy  # what the planes say of this pixel
    order = np.argsort(here, axis=-1)
    rising = np.cumsum(np.take_along_axis(weight, order, -1), -1)
    middle = (rising < 0.5 * rising[..., -1:]).sum(-1, keepdims=True)
    median = np.take_along_axis(here, np.take_along_axis(order, middle, -1), -1)
    total = weight.sum(-1)
    weight = weight * (np.abs(here - median) <= NEAR * np.abs(median))  # the median itself is among them
    near = weight.sum(-1)
    mean = [np.einsum("...p,...p->...", weight, part) / near for part in (here, gx, gy)]
    return (*mean, near / total)
