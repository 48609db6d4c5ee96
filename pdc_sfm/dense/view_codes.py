"""The views of an image that a search compares: the coarsest features of each, encoded once for all pairs.

One pass finds what is turned by up to 45 degrees, zoomed by up to 2 or squeezed to a half. Views lie so close that some view
of one image and some view of the other differ by less: turned all round; squeezed along four directions, as seen from the
side; shrunk on an empty canvas and turned; windows. Of two images one needs to be turned, one to be squeezed if the other
was taken from the side (any linear map is a turn of what is stretched along one direction), and one to be magnified while the
other is shrunk. What lies on an empty canvas is encoded without most of it, and all windows are cut out of one magnified image:
together they cost as much as nine views, not seventeen.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.views import Shape, View
from pdc_sfm.pixels import COARSE_SIDE, grid_points, inside, transform

if TYPE_CHECKING:
    from torch import Tensor

    from pdc_sfm.network import ImageCode, PDCNet

GRID = COARSE_SIDE // 16  # side of the coarsest maps
ENCODED_AT_ONCE = 4  # a CPU takes twice as long for an image of a batch of 16
TURNS = tuple(range(0, 360, 45))  # degrees
SQUEEZED_ALONG = (0, 45, 90, 135)  # degrees
SHRUNK, MAGNIFIED = 0.4, 2.0  # together they make up for a zoom of 5
FILLING = 1.25  # a squeezed image leaves room on its canvas
BESIDE = (-9.0, -9.0)  # a place from which nothing of an image is seen
PLACES = tuple((x, y) for y in (0.25, 0.5, 0.75) for x in (0.25, 0.5, 0.75))  # of windows, in parts of an image

_PLAIN = tuple(Shape(turn) for turn in TURNS)
_TILTED = tuple(Shape(squeezed_along=along, zoom=FILLING) for along in SQUEEZED_ALONG)
_SHRUNK = tuple(Shape(turn, zoom=SHRUNK) for turn in TURNS)
_WINDOWS = tuple(Shape(zoom=MAGNIFIED, place=place) for place in PLACES)
SHAPES = (*_PLAIN, *_TILTED, *_SHRUNK, *_WINDOWS)
WHOLE = len(_PLAIN) + len(_TILTED)  # of them, the first, show all of an image as large as it fits
IS_SHRUNK = np.array([shape in _SHRUNK for shape in SHAPES])
MIDDLE = slice(GRID // 4, 3 * GRID // 4)  # rows and columns of the canvas that a shrunk image lies on, turned too
AROUND = slice(GRID // 8, 7 * GRID // 8)  # and as much around it as its features depend on


@dataclass
class ViewCodes:
    """The coarsest features of the views of an image, encoded when they are first asked for; in half precision."""

    network: PDCNet
    view: View  # of the whole image
    channels: int
    device: str = "cpu"
    _maps: Tensor | None = field(default=None, init=False, repr=False)

    @property
    def nbytes(self) -> int:
        """Also before they are there: it must not grow."""
        return 2 * len(SHAPES) * GRID * GRID * self.channels

    def maps(self, least: int = len(SHAPES)) -> Tensor:
        """(views, channels, GRID, GRID) of unit length: of the whole image, or of all `SHAPES` if more are wanted."""
        import torch

        if self._maps is None:
            shown = _PLAIN + _TILTED
            some = [shown[n : n + ENCODED_AT_ONCE] for n in range(0, WHOLE, ENCODED_AT_ONCE)]
            self._maps = torch.cat([self._encoded(shapes) for shapes in some]).half()
        if least > len(self._maps):
            self._maps = torch.cat((self._maps, self._shrunk().half(), self._windows().half()))
        return self._maps

    def _encoded(self, shapes: tuple[Shape, ...], side: int = COARSE_SIDE) -> Tensor:
        """The middle of the canvas of some shapes, so many pixels wide and high."""
        return self._features([self.view.on_canvas(COARSE_SIDE, shape).middle((side, side)) for shape in shapes])

    def _shrunk(self) -> Tensor:
        """Shrunk images: they are encoded with some of their canvas, the rest is what an empty canvas shows."""
        import torch
        from torch.nn import functional as F

        images = self._encoded(_SHRUNK, side := 16 * (AROUND.stop - AROUND.start))
        empty = self._features([self.view.on_canvas(side, Shape(place=BESIDE))])[..., side // 32, side // 32]
        beside = [AROUND.start, GRID - AROUND.stop] * 2
        inside = F.pad(torch.ones((1, 1, *images.shape[2:]), device=images.device), beside)
        return torch.where(inside > 0, F.pad(images, beside), empty[..., None, None])

    def _windows(self) -> Tensor:
        """Windows, to the nearest cell, of one magnified image."""
        import torch

        seen = [side * MAGNIFIED * COARSE_SIDE / max(self.view.original_size) for side in self.view.original_size]
        steps = [round(side / 4 * GRID / COARSE_SIDE) for side in seen]  # from window to window, cells
        columns, rows = (GRID + 2 * step for step in steps)
        canvas = self.view.on_canvas(COARSE_SIDE, Shape(zoom=MAGNIFIED)).middle((16 * columns, 16 * rows))
        found = self._features([canvas])[0]
        places = [(x, y) for y in range(3) for x in range(3)]  # as in `PLACES`
        corners = [(x * steps[0], y * steps[1]) for x, y in places]
        return torch.stack([found[:, y : y + GRID, x : x + GRID] for x, y in corners])

    def _features(self, views: list[View]) -> Tensor:
        import torch

        from pdc_sfm.network import prepare_image

        with torch.inference_mode():
            images = torch.cat([prepare_image(view.render()) for view in views])
            return self.network.coarsest_features(images.to(self.device))


def encode_coarse(network: PDCNet, views: list[View], device: str) -> ImageCode:
    """Views of 256x256 pixels, a batch, by that branch alone."""
    import torch

    from pdc_sfm.network import prepare_image

    with torch.inference_mode():
        images = torch.cat([prepare_image(view.render()) for view in views])
        return network.encode_low(images.to(device))


def places(view: View, cells: int) -> np.ndarray:
    """(cells, cells, 2): where the centers of a view's cells lie in the original image; NaN beyond it."""
    there = transform(grid_points((cells, cells), view.size), view.original_from_view)
    there[~inside(there, view.original_size)] = np.nan
    return there


@functools.lru_cache(2)
def combinations(whole: bool = False) -> np.ndarray:
    """(N, 2): the views of both images that are compared, numbers of `SHAPES`; first those of the whole images, or only those."""
    plain, tilted, shrunk, windows = (
        [SHAPES.index(shape) for shape in shapes] for shapes in (_PLAIN, _TILTED, _SHRUNK, _WINDOWS)
    )
    of_whole = [(plain[0], b) for b in plain] + _both_ways([(a, b) for a in tilted for b in plain])
    zoomed = [(a, b) for a in windows for b in (*plain, *shrunk)] + [(plain[0], b) for b in shrunk]
    return np.array(of_whole if whole else [*of_whole, *_both_ways(zoomed)])


@functools.lru_cache(1)
def kinds() -> np.ndarray:
    """(N,): of the combinations, a number for how large both show their image, whichever is which."""
    zooms = np.array([shape.zoom if shape not in _TILTED else 1.0 for shape in SHAPES])[combinations()]
    return np.unique(np.sort(zooms, 1), axis=0, return_inverse=True)[1].ravel()


def _both_ways(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [*pairs, *((b, a) for a, b in pairs)]
