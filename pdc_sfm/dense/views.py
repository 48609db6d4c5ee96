"""Views of an image: resized, rotated, or warped by a homography, with the mapping to original pixels."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from pdc_sfm.images import resize_image
from pdc_sfm.pixels import MIN_SIDE, Size, grid_points, rescale_matrix, transform

OUTSIDE = (0.485, 0.456, 0.406)  # the network's mean color, its zero: what a view shows beyond the image
FINER = 1.2  # source pixels a pixel up to which averaging would only blur: bilinear reading skips none below 2
SQUEEZED = 0.4  # to what a direction is squeezed: what is seen at 66 degrees
AT_ONCE = 12_000_000  # bytes of an image, 4 megapixels: as floats 48 MB


@dataclass(frozen=True)
class Shape:
    """How an image is shown on a canvas: squeezed along a direction, then turned, about a place that is in its middle."""

    turn: float = 0.0  # degrees, counter-clockwise
    squeezed_along: float | None = None  # degrees from the right to below
    zoom: float = 1.0
    place: tuple[float, float] = (0.5, 0.5)  # in parts of the image


@dataclass(frozen=True)
class View:
    """An image as the network is to see it."""

    source: np.ndarray  # (H, W, 3) uint8, the whole image at any resolution
    original_size: Size  # (width, height) of the image file
    size: Size  # (width, height) of the view
    original_from_view: np.ndarray  # (3, 3): pixel indices of the view -> of the original
    seen_size: Size  # (width, height) of the whole image at the view's resolution

    @staticmethod
    def whole(source: np.ndarray, original_size: Size, size: Size) -> View:
        """The image resized."""
        return View(source, original_size, size, rescale_matrix(size, original_size), size)

    def scaled(self, factor: float) -> View:
        """The same view smaller or larger: sides are multiples of 8, which the network takes without resizing again."""
        width, height = (max(MIN_SIDE, 8 * round(side * factor / 8)) for side in self.size)
        seen_width, seen_height = (round(a * b / c) for a, b, c in zip(self.seen_size, (width, height), self.size))
        original_from_view = self.original_from_view @ rescale_matrix((width, height), self.size)
        seen = seen_width, seen_height
        return replace(self, size=(width, height), seen_size=seen, original_from_view=original_from_view)

    def zoomed(self, factor: float, center: tuple[float, float] = (0.5, 0.5)) -> View:
        """A view as large, of a window that is magnified; a factor below 1 shrinks it all on an empty canvas.

        The center of the window is in parts of this view's width and height.
        """
        x, y = (part * side - 0.5 for part, side in zip(center, self.size))
        to_window = np.array([[1 / factor, 0, x], [0, 1 / factor, y], [0, 0, 1.0]])
        width, height = (max(1, round(side * factor)) for side in self.seen_size)
        original_from_view = self.original_from_view @ to_window @ np.linalg.inv(_shift(self.size))
        return replace(self, seen_size=(width, height), original_from_view=original_from_view)

    def on_canvas(self, side: int, shape: Shape) -> View:
        """The image on a square canvas, its longer side as long as the canvas, then shown in some shape."""
        angle, along = math.radians(shape.turn), math.radians(shape.squeezed_along or 0.0)
        direction = np.array([math.cos(along), math.sin(along)])
        squeeze = np.eye(2)
        if shape.squeezed_along is not None:
            squeeze += (1 / SQUEEZED - 1) * np.outer(direction, direction)
        # y points down: turning the picture counter-clockwise, a pixel of the canvas comes from its clockwise place
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        scale = side / max(self.original_size) * shape.zoom
        about_place = np.eye(3)
        about_place[:2, :2] = squeeze @ turn / scale
        about_place[:2, 2] = [part * n - 0.5 for part, n in zip(shape.place, self.original_size)]
        width, height = (max(1, round(n * scale)) for n in self.original_size)
        original_from_view = about_place @ np.linalg.inv(_shift((side, side)))
        return replace(self, size=(side, side), seen_size=(width, height), original_from_view=original_from_view)

    def middle(self, size: Size) -> View:
        """The middle of this view, or more than it: another size of the canvas."""
        original_from_view = self.original_from_view @ _shift(self.size) @ np.linalg.inv(_shift(size))
        return replace(self, size=size, original_from_view=original_from_view)

    def rotated(self, degrees: float) -> View:
        """The view turned counter-clockwise about its center, on a canvas that holds all of it."""
        angle = math.radians(degrees)
        cos, sin = math.cos(angle), math.sin(angle)
        width, height = self.size
        size = (
            math.ceil(abs(width * cos) + abs(height * sin) - 1e-6),
            math.ceil(abs(width * sin) + abs(height * cos) - 1e-6),
        )
        # y points down: turning the picture counter-clockwise, a pixel of the canvas comes from its clockwise place
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        view_from_canvas = _shift(self.size) @ turn @ np.linalg.inv(_shift(size))
        return replace(self, size=size, original_from_view=self.original_from_view @ view_from_canvas)

    def seen_from(self, reference: View, query_from_reference: np.ndarray) -> View:
        """This image warped to another view's frame by a homography between the original images' pixels."""
        original_from_view = query_from_reference @ reference.original_from_view
        return replace(self, size=reference.size, original_from_view=original_from_view)

    def cell_areas(self, shape: tuple[int, ...]) -> np.ndarray:
        """(h, w): of the cells of a grid over the view, in parts of the image."""
        rows, columns = shape
        points = grid_points((columns, rows), self.size).reshape(-1, 2)
        areas = np.abs(np.linalg.det(jacobian(self.original_from_view, points))).reshape(rows, columns)
        return areas * np.prod(self.size) / (rows * columns) / np.prod(self.original_size)

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether it shows the image and nothing else, only resized."""
        return np.allclose(self.original_from_view, rescale_matrix(self.size, self.original_size))

    def render(self) -> np.ndarray:
        """The pixels of the view, (h, w, 3) float32 in [0, 1], never rounded to bytes in between."""
        height, width = self.source.shape[:2]
        source_from_view = rescale_matrix(self.original_size, (width, height)) @ self.original_from_view
        if np.allclose(source_from_view, rescale_matrix(self.size, (width, height))):
            return _resize(self.source, self.size)
        return _warp(self.source, source_from_view, self.size)


def jacobian(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Derivative of a homography at points (N, 2): (N, 2, 2)."""
    x = np.concatenate((points, np.ones((len(points), 1))), 1) @ homography.T
    places = x[:, :2] / x[:, 2:]
    return (homography[None, :2, :2] - places[:, :, None] * homography[None, 2:, :2]) / x[:, 2, None, None]


def _shift(size: Size) -> np.ndarray:
    """From the center of an image to its pixel indices."""
    return np.array([[1.0, 0.0, (size[0] - 1) / 2], [0.0, 1.0, (size[1] - 1) / 2], [0.0, 0.0, 1.0]])


def _resize(image: np.ndarray, size: Size) -> np.ndarray:
    """(H, W, 3) uint8 -> (h, w, 3) float32 in [0, 1]; large photographs channel by channel, which takes less memory."""
    if image.size <= AT_ONCE:
        resized = resize_image(image.astype(np.float32), size)
    else:
        resized = np.stack([resize_image(image[..., c].astype(np.float32), size) for c in range(3)], -1)
    return resized.clip(0, 255) / np.float32(255)


def _warp(source: np.ndarray, source_from_view: np.ndarray, size: Size) -> np.ndarray:
    """Bilinear warp; a source that is finer than the view is averaged down first, so that nothing aliases."""
    import cv2

    height, width = source.shape[:2]
    shrink = _pixels_per_pixel(source_from_view, size, (width, height))
    smaller = (width, height)
    if shrink > FINER:
        smaller = (max(1, round(width / shrink)), max(1, round(height / shrink)))
    return cv2.warpPerspective(
        _resize(source, smaller),
        rescale_matrix((width, height), smaller) @ source_from_view,
        size,
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=OUTSIDE,
    )


def _pixels_per_pixel(source_from_view: np.ndarray, size: Size, source_size: Size) -> float:
    """The usual length, in source pixels, of one pixel of the view, where the view shows the source."""
    x, y = np.meshgrid(np.linspace(0, size[0] - 1, 9), np.linspace(0, size[1] - 1, 9))
    points = np.stack((x.ravel(), y.ravel()), 1)
    there = transform(points, source_from_view)
    visible = (there > 0).all(1) & (there < source_size).all(1)
    if not visible.any():
        return 1.0
    areas = np.abs(np.linalg.det(jacobian(source_from_view, points[visible])))
    return float(np.sqrt(np.median(areas)))
