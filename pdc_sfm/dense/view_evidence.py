"""Compares views of two images by their features alone: hundreds of combinations as matrix products, without a decoder.

Nearly all combinations are wrong even of images that show the same, so a pair brings its own measure of chance: what the
median combination finds. A right one stands out from it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.view_codes import GRID, IS_SHRUNK, MIDDLE, SHAPES, ViewCodes, combinations, kinds, places
from pdc_sfm.dense.views import View
from pdc_sfm.pixels import COARSE_SIDE, Size

if TYPE_CHECKING:
    from torch import Tensor

COMPARED_AT_ONCE = 9  # combinations: their products fit a processor's cache
OUTSTANDING = 2.5  # standard deviations above the mean of a row and a column of similarities, from which a match counts
# The best combination over the median one of its kind, below which images are unrelated: 62 % of 126 pairs of scenes with nothing
# in common, 57 % of 60 pairs of photographs, none of 48 made zooms and sides, which have 3.8 and more.
STANDING = 3.5
_CELLS = np.arange(GRID * GRID).reshape(GRID, GRID)
# cells compared with all of another view: every other of an image as large as its canvas, all of one in the middle of it
_SOME = {False: _CELLS[::2, ::2].ravel(), True: _CELLS[MIDDLE, MIDDLE].ravel()}


class ViewEvidence:
    """How well the views of two images match, by the cells of image0's."""

    def __init__(self, codes: tuple[ViewCodes, ViewCodes]):
        self.codes = codes

    def shortlist(self, shown: np.ndarray, count: int, whole: bool) -> tuple[list[tuple[int, int]], float]:
        """The best combinations, numbers of `SHAPES`, by the `shown` cells, and how far the best stands out.

        Those of the `whole` images, turned and squeezed, take two thirds of the time, and miss what only a window shows.
        """
        order, standing = self._best(self._of_whole if whole else self._of_all, shown)
        return [(first, second) for first, second in combinations()[order[:count]].tolist()], standing

    def is_upright(self) -> bool:
        """Whether the whole images match best as they are."""
        return combinations()[self._of_whole.sum(1).argmax()].tolist() == [0, 0]

    def shown(self, unmatched: np.ndarray) -> np.ndarray:
        """(views, cells) bool: cells of the views of image0 that lie on the part of it."""
        return part_at(unmatched, self._places(0), self.codes[0].view).reshape(len(SHAPES), -1)

    @functools.cached_property
    def on_second(self) -> np.ndarray:
        """(views, cells) bool: cells of the views of image1 that lie on it."""
        return np.isfinite(self._places(1)).all(-1).reshape(len(SHAPES), -1)

    def _best(self, evidence: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, float]:
        """Combinations by how far what they find (N, cells) of shown cells stands out, best first, and how far the best does.

        What chance finds is that of the median combination of the same kind: shrunk images have fewer cells than others.
        """
        found = (evidence * shown[combinations()[: len(evidence), 0]]).sum(1)
        part = shown.mean() / max(np.isfinite(self._places(0)).all(-1).mean(), 1e-6)
        every = max(float(np.median(found)), part * float(np.median(evidence.sum(1))), 1e-6)  # few cells may have none
        chance = np.full(len(found), every)
        for kind in np.unique(kinds()[: len(found)]):
            chance[kinds()[: len(found)] == kind] = max(every, float(np.median(found[kinds()[: len(found)] == kind])))
        standing = found / chance
        return np.argsort(-standing), float(standing.max())

    def _places(self, image: int) -> np.ndarray:
        """(views, GRID, GRID, 2): cells of the views of an image in it."""
        return _places_in(self.codes[image].view.original_size)

    @functools.cached_property
    def _of_whole(self) -> np.ndarray:
        return self._compared(combinations(whole=True))

    @functools.cached_property
    def _of_all(self) -> np.ndarray:
        return np.concatenate((self._of_whole, self._compared(combinations()[len(self._of_whole) :])))

    def _compared(self, pairs: np.ndarray) -> np.ndarray:
        """(N, cells): how far the matches of the cells of image0's view stand out."""
        import torch

        with torch.inference_mode():
            maps = [code.maps(int(pairs.max()) + 1).float().flatten(2) for code in self.codes]
            found = np.zeros((len(pairs), GRID * GRID), np.float32)
            for shrunk, from_first in ((False, True), (True, True), (True, False)):
                second = IS_SHRUNK[pairs[:, 1]]
                chosen = np.flatnonzero(second if not from_first else (IS_SHRUNK[pairs[:, 0]] == shrunk) & ~second)
                if not len(chosen):
                    continue
                here, there = (0, 1) if from_first else (1, 0)
                maps_here, maps_there = maps[here][..., _SOME[shrunk]], maps[there]
                standing, partner = (
                    x.cpu().numpy() for x in compare(maps_here, maps_there, pairs[chosen][:, [here, there]])
                )
                rows, columns = standing.nonzero()
                cells = _SOME[shrunk][columns] if from_first else partner[rows, columns]
                found[chosen[rows], cells] = standing[rows, columns]  # mutual: no cell has two
            return found


def compare(maps0: Tensor, maps1: Tensor, pairs: np.ndarray) -> tuple[Tensor, Tensor]:
    """Mutual nearest neighbors of views, (views, channels, cells) each, for pairs (N, 2) of them.

    Returns (N, cells of the first) each: what a match counts, and its cell of the second. It counts by the square of how far
    its similarity stands out from its row and its column: on an empty canvas, and between things that repeat, everything is as
    similar as anything.
    """
    import torch

    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    found = []
    for first, start, stop in _runs(pairs[order]):
        similar = maps0[first].mT @ maps1[start:stop]  # no view is copied for it
        squares = similar.square()
        best, partner = similar.max(2)
        best_back = similar.amax(1)  # without its place, which takes ten times as long
        rows = _standing(best, similar.mean(2), squares.mean(2))
        columns = _standing(best_back, similar.mean(1), squares.mean(1))
        mutual = best_back.gather(1, partner) == best
        standing = torch.minimum(rows, columns.gather(1, partner)) - OUTSTANDING
        found.append((standing.clamp(min=0).square() * mutual, partner))
    back = torch.from_numpy(np.argsort(order)).to(maps0.device)
    standing, partner = (torch.cat(parts)[back] for parts in zip(*found))
    return standing, partner


def _standing(best: Tensor, mean: Tensor, mean_square: Tensor) -> Tensor:
    """How many standard deviations the best lies above the mean."""
    return (best - mean) / (mean_square - mean.square()).clamp(min=1e-8).sqrt()


def _runs(pairs: np.ndarray) -> list[tuple[int, int, int]]:
    """Sorted pairs (N, 2) as runs of one first and consecutive second numbers, (first, start, stop) each."""
    runs: list[tuple[int, int, int]] = []
    for first, second in pairs.tolist():
        if runs and runs[-1][0] == first and runs[-1][2] == second and second - runs[-1][1] < COMPARED_AT_ONCE:
            runs[-1] = (first, runs[-1][1], second + 1)
        else:
            runs.append((first, second, second + 1))
    return runs


@functools.lru_cache(16)
def _places_in(size: Size) -> np.ndarray:
    """Of images of one size the views show the same places."""
    view = View.whole(np.zeros((0, 0, 3), np.uint8), size, size)
    return np.stack([places(view.on_canvas(COARSE_SIDE, shape), GRID) for shape in SHAPES])


def part_at(part: np.ndarray, points: np.ndarray, view: View) -> np.ndarray:
    """A part (h, w) bool of an image at points (..., 2) of it; False where they are not on it."""
    known = np.isfinite(points).all(-1)
    width, height = view.original_size
    x, y = np.moveaxis(np.where(known[..., None], points, 0.0), -1, 0)
    columns = ((x + 0.5) * part.shape[1] / width).astype(int).clip(0, part.shape[1] - 1)
    rows = ((y + 0.5) * part.shape[0] / height).astype(int).clip(0, part.shape[0] - 1)
    return known & part[rows, columns]
