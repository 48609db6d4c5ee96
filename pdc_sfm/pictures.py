"""Arrays as pictures: flow and confidence in colour, tiles with captions. All pictures are (H, W, 3) uint8 RGB."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Middlebury colour wheel (Baker et al. 2007): steps from one pure hue to the next
_HUES = ((255, 0, 0), (255, 255, 0), (0, 255, 0), (0, 255, 255), (0, 0, 255), (255, 0, 255))
_STEPS = (15, 6, 4, 11, 13, 6)
_HEAT = ((0.0, (190, 30, 45)), (0.5, (250, 220, 90)), (1.0, (30, 140, 70)))  # red: not to be trusted; green: sure


def flow_to_colour(flow: np.ndarray, largest: float | None = None) -> np.ndarray:
    """(H, W, 2) flow -> direction as hue, length as saturation; `largest` is the length of full saturation."""
    x, y = flow[..., 0].astype(np.float64), flow[..., 1].astype(np.float64)
    length = np.hypot(x, y)
    known = np.isfinite(length)
    if largest is None:
        largest = float(length[known].max()) if known.any() else 1.0
    strength = np.clip(np.where(known, length, 0) / max(largest, 1e-9), 0, 1)[..., None]
    wheel = _colour_wheel()
    at = (np.where(known, np.arctan2(-y, -x), 0) / np.pi + 1) / 2 * len(wheel)
    low = np.floor(at).astype(int)
    part = (at - low)[..., None]
    hue = (1 - part) * wheel[low % len(wheel)] + part * wheel[(low + 1) % len(wheel)]
    picture = 255 - strength * (255 - hue)
    return np.where(known[..., None], picture + 0.5, 0).astype(np.uint8)


def heat(values: np.ndarray) -> np.ndarray:
    """(H, W) values in 0..1 (a confidence) -> red over yellow to green; what is not a number is black."""
    at, colours = [stop for stop, _ in _HEAT], np.array([colour for _, colour in _HEAT], float)
    known = np.isfinite(values)
    safe = np.clip(np.where(known, values, 0), 0, 1)
    picture = np.stack([np.interp(safe, at, colours[:, c]) for c in range(3)], -1)
    return np.where(known[..., None], picture + 0.5, 0).astype(np.uint8)


def grey(values: np.ndarray) -> np.ndarray:
    """(H, W) bool, or numbers in 0..1 -> black to white."""
    shade = np.clip(np.nan_to_num(values.astype(np.float64)) * 255 + 0.5, 0, 255).astype(np.uint8)
    return np.repeat(shade[..., None], 3, axis=2)


def overlay(image: np.ndarray, colours: np.ndarray, weight: float = 0.5) -> np.ndarray:
    """A picture laid over an image of the same size."""
    return (image * (1 - weight) + colours * weight + 0.5).astype(np.uint8)


def tile(rows: Sequence[Sequence[np.ndarray]], captions: Sequence[str] = (), gap: int = 4) -> np.ndarray:
    """Rows of pictures, each column as wide as its widest picture, with a caption over each column."""
    columns = max(len(row) for row in rows)
    widths = [max(row[c].shape[1] for row in rows if c < len(row)) for c in range(columns)]
    heights = [max(picture.shape[0] for picture in row) for row in rows]
    head = 24 if captions else 0
    sheet = np.full((head + sum(heights) + gap * (len(rows) + 1), sum(widths) + gap * (columns + 1), 3), 255, np.uint8)
    top = head + gap
    for row, height in zip(rows, heights):
        left = gap
        for picture, width in zip(row, widths):
            sheet[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
            left += width + gap
        top += height + gap
    left = gap
    for text, width in zip(captions, widths):
        write(sheet, text, (left + 2, 17))
        left += width + gap
    return sheet


def write(
    picture: np.ndarray, text: str, at: tuple[int, int], colour: tuple[int, int, int] = (0, 0, 0), size: float = 0.45
) -> None:
    """Small text into a picture, in place; `at` is the left end of its base line."""
    import cv2

    cv2.putText(picture, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, colour, 1, cv2.LINE_AA)


def _colour_wheel() -> np.ndarray:
    """(55, 3)."""
    colours = []
    for start, end, steps in zip(_HUES, (*_HUES[1:], _HUES[0]), _STEPS):
        part = np.arange(steps)[:, None] / steps
        colours.append((1 - part) * np.array(start) + part * np.array(end))
    return np.concatenate(colours)
