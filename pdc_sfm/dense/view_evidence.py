"""Which views of two images match by their features alone: some hundred combinations in products of matrices, without a decoder.

Nearly all combinations are wrong even of images that show the same, so a pair brings its own measure of chance: what the
median combination finds. A right one stands out from it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.view_codes import GRID, SHAPES, ViewCodes, combinations, places
from pdc_sfm.dense.views import View
from pdc_sfm.pixels import COARSE_SIDE

if TYPE_CHECKING:
    from torch import Tensor

COMPARED_AT_ONCE = 8  # combinations: their products fit a processor's cache
OUTSTANDING = 2.5  # standard deviations above the mean of a row and a column of similarities, from which a match counts
# The best combination over the median one, below which images are unrelated. Of 126 pairs with nothing in common a quarter
# lies below; then the coarsest level decides (`view_search.LEAST_CHANCE`), and 8 % of them go on, against 18 of 20 turned,
# tilted or zoomed pairs of which the images as they are show little.
STANDING = 3.0
_SOME = np.arange(GRID * GRID).reshape(GRID, GRID)[::2, ::2].ravel()  # cells compared: four times as fast as all


class ViewEvidence:
    """How well the views of two images match, by the cells of image0's."""

    def __init__(self, codes: tuple[ViewCodes, ViewCodes]):
        self.codes = codes

    def shortlist(self, shown: np.ndarray, count: int, whole: bool) -> list[tuple[int, int]]:
        """The best combinations, numbers of `SHAPES`, by the `shown` cells; none, if the best is hardly better than others.

        Those of the `whole` images, turned and squeezed, take a quarter of the time and 12 of the 29 views, and miss what only
        a window shows.
        """
        order, standing = self._best(self._of_whole if whole else self._of_all, shown)
        if standing < STANDING:
            return []
        return [(first, second) for first, second in combinations()[order[:count]].tolist()]

    def is_upright(self) -> bool:
        """Whether the whole images match best as they are."""
        return combinations()[self._of_whole.sum(1).argmax()].tolist() == [0, 0]

    def shown(self, unmatched: np.ndarray) -> np.ndarray:
        """(views, cells) bool: cells of the views of image0 that lie on the part of it."""
        return part_at(unmatched, self._places, self.codes[0].view).reshape(len(SHAPES), -1)

    def _best(self, evidence: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, float]:
        """Combinations by what they find (N, cells) of shown cells, best first, and how far the best stands out."""
        some = shown[combinations()[: len(evidence), 0]][:, _SOME]
        found = (evidence * some).sum(1)
        part = shown.mean() / max(np.isfinite(self._places).all(-1).mean(), 1e-6)
        chance = max(float(np.median(found)), part * float(np.median(evidence.sum(1))), 1e-6)  # few cells may have none
        return np.argsort(-found), float(found.max() / chance)

    @functools.cached_property
    def _places(self) -> np.ndarray:
        """(views, GRID, GRID, 2): cells of the views of image0 in it."""
        view = self.codes[0].view
        return np.stack([places(view.on_canvas(COARSE_SIDE, shape), GRID) for shape in SHAPES])

    @functools.cached_property
    def _of_whole(self) -> np.ndarray:
        return self._compared(combinations(whole=True))

    @functools.cached_property
    def _of_all(self) -> np.ndarray:
        return np.concatenate((self._of_whole, self._compared(combinations()[len(self._of_whole) :])))

    def _compared(self, pairs: np.ndarray) -> np.ndarray:
        """(N, cells): how far the best match of some cells of image0's view stands out."""
        import torch

        with torch.inference_mode():
            maps0, maps1 = (code.maps(int(pairs.max()) + 1).float().flatten(2) for code in self.codes)
            return compare(maps0[..., _SOME], maps1, torch.from_numpy(pairs).to(maps0.device)).cpu().numpy()


def compare(maps0: Tensor, maps1: Tensor, pairs: Tensor) -> Tensor:
    """Mutual nearest neighbors of views, (views, channels, cells) each, for pairs (N, 2) of them: (N, cells of the first).

    A match counts by the square of how far its similarity stands out from its row and its column: on an empty canvas, and
    between things that repeat, everything is as similar as anything.
    """
    import torch

    found = []
    for some in pairs.split(COMPARED_AT_ONCE):
        similar = maps0[some[:, 0]].mT @ maps1[some[:, 1]]
        squares = similar.square()
        out = []  # of rows and columns: how far the best stands out, and which it is
        for axis in (2, 1):
            best, where = similar.max(axis)
            mean = similar.mean(axis)
            deviation = (squares.mean(axis) - mean.square()).clamp(min=1e-12).sqrt()
            out.append(((best - mean) / deviation.clamp(min=1e-4), where))
        (rows, partner), (columns, back) = out
        mutual = back.gather(1, partner) == torch.arange(rows.shape[1], device=rows.device)
        standing = torch.minimum(rows, columns.gather(1, partner)) - OUTSTANDING
        found.append(standing.clamp(min=0).square() * mutual)
    return torch.cat(found)


def part_at(part: np.ndarray, points: np.ndarray, view: View) -> np.ndarray:
    """A part (h, w) bool of an image at points (..., 2) of it; False where they are not on it."""
    known = np.isfinite(points).all(-1)
    width, height = view.original_size
    x, y = np.moveaxis(np.where(known[..., None], points, 0.0), -1, 0)
    columns = ((x + 0.5) * part.shape[1] / width).astype(int).clip(0, part.shape[1] - 1)
    rows = ((y + 0.5) * part.shape[0] / height).astype(int).clip(0, part.shape[0] - 1)
    return known & part[rows, columns]
