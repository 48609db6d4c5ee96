"""Arrays as pictures: flow and confidence in color, tiles with captions. All pictures are (H, W, 3) uint8 RGB."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Middlebury color wheel (Baker et al. 2007): steps from one pure hue to the next
_HUES = ((255, 0, 0), (255, 255, 0), (0, 255, 0), (0, 255, 255), (0, 0, 255), (255, 0, 255))
_STEPS = (15, 6, 4, 11, 13, 6)
_HEAT = ((0.0, (190, 30, 45)), (0.5, (250, 220, 90)), (1.0, (30, 140, 70)))  # red: not to be trusted; green: sure


def flow_to_color(flow: np.ndarray, largest: float | None = None) -> np.ndarray:
    """(H, W, 2) flow -> direction as hue, length as saturation; `largest` is the length of full saturation."""
    x, y = flow[..., 0].astype(np.float64), flow[..., 1].astype(np.float64)
    length = np.hypot(x, y)
    known = np.isfinite(length)
    if largest is None:
        largest = float(length[known].max()) if known.any() else 1.0
    strength = np.clip(np.where(known, length, 0) / max(largest, 1e-9), 0, 1)[..., None]
    wheel = _color_wheel()
    at = (np.where(known, np.arctan2(-y, -x), 0) / np.pi + 1) / 2 * len(wheel)
    low = np.floor(at).astype(int)
    part = (at - low)[..., None]
    hue = (1 - part) * wheel[low % len(wheel)] + part * wheel[(low + 1) % len(wheel)]
    picture = 255 - strength * (255 - hue)
    return np.where(known[..., None], picture + 0.5, 0).astype(np.uint8)


def heat(values: np.ndarray) -> np.ndarray:
    """(H, W) values in 0..1 (a confidence) -> red over yellow to green; what is not a number is black."""
    at, colors = [stop for stop, _ in _HEAT], np.array([color for _, color in _HEAT], float)
    known = np.isfinite(values)
    safe = np.clip(np.where(known, values, 0), 0, 1)
    picture = np.stack([np.interp(safe, at, colors[:, c]) for c in range(3)], -1)
    return np.where(known[..., None], picture + 0.5, 0).astype(np.uint8)


def gray(values: np.ndarray) -> np.ndarray:
    """(H, W) bool, or numbers in 0..1 -> black to white."""
    shade = np.clip(np.nan_to_num(values.astype(np.float64)) * 255 + 0.5, 0, 255).astype(np.uint8)
    return np.repeat(shade[..., None], 3, axis=2)


def overlay(image: np.ndarray, colors: np.ndarray, weight: float = 0.5) -> np.ndarray:
    """A picture laid over an image of the same size."""
    return (image * (1 - weight) + colors * weight + 0.5).astype(np.uint8)


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
    picture: np.ndarray, text: str, at: tuple[int, int], color: tuple[int, int, int] = (0, 0, 0), size: float = 0.45
) -> None:
    """Small text into a picture, in place; `at` is the left end of its base line."""
    import cv2

    cv2.putText(picture, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, color, 1, cv2.LINE_AA)


def _color_wheel() -> np.ndarray:
    """(55, 3)."""
    colors = []
    for start, end, steps in zip(_HUES, (*_HUES[1:], _HUES[0]), _STEPS):
        part = np.arange(steps)[:, None] / steps
        colors.append((1 - part) * np.array(start) + part * np.array(end))
    return np.concatenate(colors)


def sample_image(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The image at (H, W, 2) pixel indices, bilinear; black beyond it."""
    import cv2

    x, y = (np.ascontiguousarray(points[..., axis], np.float32) for axis in (0, 1))
    return cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)


def tint(image: np.ndarray, mask: np.ndarray, color: tuple[int, int, int], weight: float = 0.6) -> np.ndarray:
    """The image with a color laid over the pixels of a mask (H, W)."""
    tinted = overlay(image, np.broadcast_to(np.array(color, np.uint8), image.shape), weight)
    return np.where(mask[..., None], tinted, image)


def match_lines(
    image0: np.ndarray, image1: np.ndarray, points0: np.ndarray, points1: np.ndarray, colors: np.ndarray, gap: int = 4
) -> np.ndarray:
    """Two images side by side with a line between matched points (N, 2), each of its own color (N, 3)."""
    import cv2

    sheet = tile([[image0, image1]], gap=gap)
    offset0, offset1 = np.array([gap, gap]), np.array([2 * gap + image0.shape[1], gap])
    shift = 4  # OpenCV draws at sixteenths of a pixel
    for start, end, color in zip(points0 + offset0, points1 + offset1, colors.tolist()):
        a, b = (tuple(int(v) for v in np.round(point * 2**shift)) for point in (start, end))
        cv2.line(sheet, a, b, color, 1, cv2.LINE_AA, shift)
        for point in (a, b):
            cv2.circle(sheet, point, 2 << shift, color, -1, cv2.LINE_AA, shift)
    return sheet
