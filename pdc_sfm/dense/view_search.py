"""Search for a pair that one pass does not find: turned, tilted, zoomed (beyond the paper).

The views of both images are encoded once (`view_codes.py`). A pair compares the coarsest features of some hundred combinations
of them in products of matrices, has the coarsest level of the network decide between the best of these, and the next level
between the best of those. What comes out is a homography, or a turn, by which a whole pass is worth its time. Whether it is,
the pair itself tells: the same views with one of them upside down are what chance, and the borders of images, find in it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.homography_fit import fit_points
from pdc_sfm.dense.view_codes import GRID, SHAPES, TURNS, ViewCodes, combinations, encode_coarse, opposite, places
from pdc_sfm.dense.views import View
from pdc_sfm.pixels import COARSE_SIDE, grid_points, inside, transform

if TYPE_CHECKING:
    from torch import Tensor

    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.network import ImageCode, LevelOutput, PDCNet

COMPARED_AT_ONCE = 32  # combinations: their products fit a processor's cache
OUTSTANDING = 2.5  # standard deviations above the mean of a row and a column of similarities, from which a match counts
SHORTLIST = 16  # combinations that the coarsest level decodes
# of them that the next level decodes, the last ones only if the first are not mere chance
HYPOTHESES, FIRST_HYPOTHESES = 5, 2
# What views expect to match, against what chance does. Set when chance was the same views turned by 135 and 225 degrees: 24 to
# 133 times as much on 7 warped pairs, 1.6 to 4.5 on 6 unrelated ones. Things that look alike (the wings of a castle) pass.
CHANCE, LEAST_CHANCE = 8.0, 2.5
FEWEST_CELLS = 24  # likely, of 32x32, for a homography
LIKELY = 0.5  # of lying within half a cell
RANSAC_THRESHOLD = 4.0  # pixels of the branch, half a cell
FAR_ZOOM, FAR_TURN = 1.7, 25.0  # along any direction; degrees: beyond them a pass finds only a part
LARGEST_PART = 0.7  # of the reference's sides: what the query shows of it is magnified if it is less
ROOM = 1.1  # around it
Shapes = tuple[int, int]  # of both images, numbers of `SHAPES`
_SOME = (
    np.arange(GRID * GRID).reshape(GRID, GRID)[::2, ::2].ravel()
)  # cells that are compared: four times as fast as all


@dataclass(frozen=True)
class ViewHypothesis:
    """What the 256x256 branch finds between two views."""

    views: tuple[View, View]
    there: np.ndarray  # (n, n, 2): where the cells of the first lie in the second, pixel indices
    confidence: np.ndarray  # (n, n): of lying within half a cell; 0 where one of them is not on its image

    @functools.cached_property
    def originals(self) -> np.ndarray:
        """(n, n, 2): the cells in the first image."""
        return places(self.views[0], len(self.there))

    def expected(self, unmatched: np.ndarray) -> float:
        """Matches, of the part of the first image (h, w) bool that has none yet."""
        return float((self.confidence * _at(unmatched, self.originals, self.views[0])).sum())

    def homography(self, unmatched: np.ndarray) -> np.ndarray | None:
        """image1_from_image0 (3, 3) that its likely cells of that part agree on; None if they do not."""
        chosen = (self.confidence > LIKELY) & _at(unmatched, self.originals, self.views[0])
        if chosen.sum() < FEWEST_CELLS:
            return None
        here = grid_points((len(self.there),) * 2, self.views[0].size)
        found = fit_points(here[chosen], self.there[chosen], FEWEST_CELLS, RANSAC_THRESHOLD)
        return None if found is None else self.placed(found[0])

    def placed(self, second_from_first: np.ndarray) -> np.ndarray:
        """A homography of the two views as one of the images."""
        first, second = (view.original_from_view for view in self.views)
        return second @ second_from_first @ np.linalg.inv(first)


@dataclass(frozen=True)
class Proposal:
    """How a whole pass should see a pair."""

    image1_from_image0: np.ndarray  # (3, 3)
    turn: float | None  # of image1, where that is all there is to it: no homography fits better
    expected: float  # matches, of the 32x32 cells of a view


class ViewSearch:
    """The hypotheses of how one pair of images is seen."""

    def __init__(self, network: PDCNet, codes: tuple[ViewCodes, ViewCodes], device: str = "cpu"):
        self.network, self.codes, self.device = network, codes, device
        self._codes: dict[tuple[int, bytes], ImageCode] = {}

    def propose(self, unmatched: np.ndarray, known: np.ndarray | None = None, turns: bool = False) -> Proposal | None:
        """The way to see the pair that shows most of the part of image0, (h, w) bool, that has no match yet.

        `known` is a homography that may show more than it has shown so far. With `turns` only turned views are tried, which
        costs little where nothing is to be found. None: nothing stands out from chance.
        """
        shown = self._shown(unmatched, turns)
        pairs = [(0, n) for n in range(len(TURNS))] if turns else self._shortlist(shown)
        found, chance = (self._expected(some, shown) for some in (pairs, [opposite(*pair) for pair in pairs]))
        hypotheses: list[tuple[ViewHypothesis, Shapes | None]] = []
        if not turns or found.max() > LEAST_CHANCE * np.median(found):
            hypotheses = self._confirmed([pairs[n] for n in np.argsort(chance - found)[:HYPOTHESES]], unmatched)
        if known is not None:
            hypotheses.append((self._through(self._shaped(0, 0), known), None))
        if not hypotheses:
            return None
        hypothesis, shapes = max(hypotheses, key=lambda entry: entry[0].expected(unmatched))
        return self._refined(hypothesis, unmatched, shapes)

    def _confirmed(self, pairs: list[Shapes], unmatched: np.ndarray) -> list[tuple[ViewHypothesis, Shapes | None]]:
        """The hypotheses of some combinations that stand out from chance; none, if the first are nothing but chance."""
        by_chance = [self._shaped_hypothesis(opposite(*pair)).expected(unmatched) for pair in pairs[:FIRST_HYPOTHESES]]
        chance = max(sum(by_chance) / len(by_chance), 1.0)
        hypotheses = [self._shaped_hypothesis(pair) for pair in pairs[:FIRST_HYPOTHESES]]
        if max(hypothesis.expected(unmatched) for hypothesis in hypotheses) > LEAST_CHANCE * chance:
            hypotheses += [self._shaped_hypothesis(pair) for pair in pairs[FIRST_HYPOTHESES:]]
        return [
            (hypothesis, pair)
            for hypothesis, pair in zip(hypotheses, pairs)
            if hypothesis.expected(unmatched) > CHANCE * chance
        ]

    def _refined(self, hypothesis: ViewHypothesis, unmatched: np.ndarray, shapes: Shapes | None) -> Proposal:
        """The homography of a hypothesis, if the pair seen through it shows more."""
        expected, homography = hypothesis.expected(unmatched), hypothesis.homography(unmatched)
        if homography is not None:
            through = self._through(hypothesis.views[0], homography).expected(unmatched)
            if through >= expected:
                return Proposal(homography, None, through)
        turn = None
        if shapes is not None and {SHAPES[n].zoom for n in shapes} == {1.0}:
            turn = SHAPES[shapes[1]].turn - SHAPES[shapes[0]].turn
        return Proposal(hypothesis.placed(np.eye(3)), turn, expected)

    # --- the coarsest level ------------------------------------------------------------------------------------------

    def _shortlist(self, shown: np.ndarray) -> list[Shapes]:
        """The combinations that match best by their features, of shown cells."""
        evidence = (self._evidence * shown[combinations()[:, 0]][:, _SOME]).sum(1)
        return [(first, second) for first, second in combinations()[np.argsort(-evidence)[:SHORTLIST]].tolist()]

    @functools.cached_property
    def _evidence(self) -> np.ndarray:
        """(N, cells): how far the best match of some cells of image0's view stands out, for all combinations."""
        import torch

        with torch.inference_mode():
            maps0, maps1 = (code.maps().float().flatten(2) for code in self.codes)
            pairs = torch.from_numpy(combinations()).to(maps0.device)
            return compare(maps0[..., _SOME], maps1, pairs).cpu().numpy()

    def _shown(self, unmatched: np.ndarray, turns: bool) -> np.ndarray:
        """(views, cells) bool: cells of the views of image0 that lie on the part of it."""
        codes = self.codes[0]
        shapes = SHAPES[: len(TURNS)] if turns else SHAPES
        cells = np.stack([places(codes.view.on_canvas(COARSE_SIDE, shape), GRID) for shape in shapes])
        return _at(unmatched, cells, codes.view).reshape(len(shapes), -1)

    def _expected(self, pairs: list[Shapes], shown: np.ndarray) -> np.ndarray:
        """(N,): the matches that the coarsest level expects between views, of shown cells."""
        import torch

        from pdc_sfm.network import ImageCode

        side = (COARSE_SIDE, COARSE_SIDE)
        numbers = torch.tensor(pairs).T
        with torch.inference_mode():
            maps = [code.maps(int(n.max()) + 1)[n.to(self.device)] for code, n in zip(self.codes, numbers)]
            batch = [ImageCode({4: x.float()}, {}, side, side) for x in maps]
            output = self.network.decode(batch[0], batch[1], last_level=4)[-1]
            likely = _likely(output).flatten(1).cpu().numpy()
        return (likely * shown[numbers[0]]).sum(1)

    # --- the next level ----------------------------------------------------------------------------------------------

    def _shaped(self, image: int, number: int) -> View:
        return self.codes[image].view.on_canvas(COARSE_SIDE, SHAPES[number])

    def _code(self, view: View) -> ImageCode:
        """Of a view, once: several hypotheses have one in common."""
        key = id(view.source), view.original_from_view.tobytes()
        if key not in self._codes:
            self._codes[key] = encode_coarse(self.network, [view], self.device)
        return self._codes[key]

    def _shaped_hypothesis(self, pair: Shapes) -> ViewHypothesis:
        return self._hypothesis(self._shaped(0, pair[0]), self._shaped(1, pair[1]))

    def _through(self, view: View, homography: np.ndarray) -> ViewHypothesis:
        return self._hypothesis(view, self.codes[1].view.seen_from(view, homography))

    def _hypothesis(self, first: View, second: View) -> ViewHypothesis:
        import torch

        with torch.inference_mode():
            codes = [self._code(view) for view in (first, second)]
            output = self.network.decode(codes[0], codes[1], last_level=3, passes=1)[-1]
            likely = _likely(output)[0].cpu().numpy()
            flow = output.flow[0].permute(1, 2, 0).cpu().numpy()
        cells = len(flow)
        there = grid_points((cells, cells), first.size) + flow
        lands = transform(there, second.original_from_view)
        valid = inside(there, second.size) & inside(lands, second.original_size)
        valid &= np.isfinite(places(first, cells)).all(-1)
        return ViewHypothesis((first, second), there, np.where(valid, likely, 0))


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


def _likely(output: LevelOutput) -> Tensor:
    """(B, h, w): the probability of lying within half a cell."""
    from pdc_sfm.dense.confidence import confidence_map

    return confidence_map(None, output.log_var, output.logits, COARSE_SIDE / output.flow.shape[-1] / 2)[:, 0]


def _at(mask: np.ndarray, points: np.ndarray, view: View) -> np.ndarray:
    """A mask (h, w) over an image at points (..., 2) of it; False where they are not on it."""
    known = np.isfinite(points).all(-1)
    width, height = view.original_size
    x, y = np.moveaxis(np.where(known[..., None], points, 0.0), -1, 0)
    columns = ((x + 0.5) * mask.shape[1] / width).astype(int).clip(0, mask.shape[1] - 1)
    rows = ((y + 0.5) * mask.shape[0] / height).astype(int).clip(0, mask.shape[0] - 1)
    return known & mask[rows, columns]


def is_far(estimate: DenseEstimate, sure: np.ndarray, reference: View, query: View) -> bool:
    """Whether the surest cells (h, w) are so turned, zoomed or tilted, as the network sees the images, that it loses others."""
    together = sure[:-1, :-1] & sure[1:, :-1] & sure[:-1, 1:]
    if not together.any():
        return True
    points = estimate.query_points * np.divide(query.size, query.original_size)
    spacing = np.divide(reference.size, estimate.grid_size)
    across = (points[:-1, 1:] - points[:-1, :-1])[together] / spacing[0]
    down = (points[1:, :-1] - points[:-1, :-1])[together] / spacing[1]
    derivative = np.stack((np.median(across, 0), np.median(down, 0)), 1)  # (2, 2), of the flow's usual place
    longest, shortest = np.linalg.svd(derivative, compute_uv=False)  # tilt makes them differ
    turn = np.arctan2(derivative[1, 0] - derivative[0, 1], np.trace(derivative))
    return bool(longest > FAR_ZOOM or shortest < 1 / FAR_ZOOM or abs(np.degrees(turn)) > FAR_TURN)


def shown_cells(estimate: DenseEstimate, query_from_reference: np.ndarray) -> np.ndarray:
    """(h, w) bool: cells that a homography puts on the query."""
    return inside(transform(estimate.reference_points, query_from_reference), estimate.query_size)


def window_around(shown: np.ndarray) -> tuple[float, tuple[float, float]] | None:
    """Magnification and center of the window around cells (h, w), in parts of the grid; None if they are most of it."""
    rows, columns = (np.flatnonzero(shown.any(axis)) for axis in (1, 0))
    if not len(rows):
        return None
    ends = [(index[0] / n, (index[-1] + 1) / n) for index, n in ((columns, shown.shape[1]), (rows, shown.shape[0]))]
    part = ROOM * max(high - low for low, high in ends)
    if part > LARGEST_PART:
        return None
    x, y = (float(np.clip((low + high) / 2, part / 2, 1 - part / 2)) for low, high in ends)
    return 1 / part, (x, y)
