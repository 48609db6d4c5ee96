"""Searches rotated, tilted and zoomed views for a pair that one pass does not match (beyond the paper).

The views of both images are encoded once (`view_codes.py`). A pair compares the coarsest features of some hundred combinations
of them (`view_evidence.py`), has the coarsest level of the network decide between the best of these, and the next level
between the best of those. What comes out is a homography, or a turn, by which a whole pass is worth its time. Whether it is,
the pair itself tells: the same views with one of them upside down are what chance, and the borders of images, find in it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.homography_fit import fit_points
from pdc_sfm.dense.view_codes import GRID, SHAPES, ViewCodes, encode_coarse, opposite, places
from pdc_sfm.dense.view_evidence import ViewEvidence, part_at
from pdc_sfm.dense.views import View
from pdc_sfm.pixels import COARSE_SIDE, grid_points, inside, transform

if TYPE_CHECKING:
    from torch import Tensor

    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.network import ImageCode, LevelOutput, PDCNet

SHORTLIST, QUICK = 16, 4  # combinations that the coarsest level decodes
# of them that the next level decodes, the last ones only if the first are not mere chance; of a quick search only the first
HYPOTHESES, FIRST_HYPOTHESES = 5, 2
# Two measures of how far the best combinations stand out from chance, by their features and by the coarsest level, multiplied:
# less ends a quick search. 14 zoomed and tilted pairs had 6.4 or more, 28 of unrelated photographs 3 to 16; 4 of those go on.
LEAST_STANDING = 6.0
# What the next level expects must be so many times what chance finds, and a homography's cells more. Of the same 14 nine
# had 43 more than chance or more, one 35, four up to 11; unrelated ones at most 18, which was 7 times as many.
CHANCE = 2.0
FEWEST_CELLS = 24  # likely, of 32x32, for a homography
LIKELY = 0.5  # of lying within half a cell
RANSAC_THRESHOLD = 4.0  # pixels of the branch, half a cell
FAR_ZOOM, FAR_TURN = 1.7, 25.0  # along any direction; degrees: beyond them a pass finds only a part
LARGEST_PART = 0.7  # of the reference's sides: what the query shows of it is magnified if it is less
ROOM = 1.1  # around it
Shapes = tuple[int, int]  # of both images, numbers of `SHAPES`


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
        return float((self.confidence * part_at(unmatched, self.originals, self.views[0])).sum())

    def homography(self, unmatched: np.ndarray) -> np.ndarray | None:
        """image1_from_image0 (3, 3) that its likely cells of that part agree on; None if they do not."""
        chosen = (self.confidence > LIKELY) & part_at(unmatched, self.originals, self.views[0])
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
        self.evidence = ViewEvidence(codes)
        self._codes: dict[tuple[int, bytes], ImageCode] = {}

    def propose(
        self, unmatched: np.ndarray, known: np.ndarray | None = None, quick: bool = False, whole: bool = False
    ) -> Proposal | None:
        """The way to see the pair that shows most of the part of image0, (h, w) bool, that has no match yet.

        `known` is a homography that may show more than it has shown so far. A `quick` search decodes few combinations: most pairs
        it ends in milliseconds. One of `whole` images turns and squeezes them, and does without windows. None: nothing stands out
        from chance.
        """
        shown = self.evidence.shown(unmatched)
        pairs, standing = self.evidence.shortlist(shown, QUICK if quick else SHORTLIST, whole)
        if not pairs:
            return None
        found, chance = (self._expected(some, shown) for some in (pairs, [opposite(*pair) for pair in pairs]))
        if quick and standing * found.max() < LEAST_STANDING * max(chance.mean(), 1.0):
            return None
        best = [pairs[n] for n in np.argsort(chance - found)[: FIRST_HYPOTHESES if quick else HYPOTHESES]]
        hypotheses = self._confirmed(best, unmatched, known)
        if not hypotheses:
            return None
        hypothesis, shapes = max(hypotheses, key=lambda entry: entry[0].expected(unmatched))
        return self._refined(hypothesis, unmatched, shapes)

    def _confirmed(
        self, pairs: list[Shapes], unmatched: np.ndarray, known: np.ndarray | None
    ) -> list[tuple[ViewHypothesis, Shapes | None]]:
        """The hypotheses of some combinations, and of a known homography, that stand out from chance.

        None, if the first are nothing but chance.
        """
        hypotheses: list[tuple[ViewHypothesis, Shapes | None]] = []
        if known is not None:
            hypotheses.append((self._through(self._shaped(0, 0), known), None))
        for n, pair in enumerate(pairs):
            best = max((hypothesis.expected(unmatched) for hypothesis, _ in hypotheses), default=0.0)
            if n >= FIRST_HYPOTHESES and best < FEWEST_CELLS / 2:
                break
            hypotheses.append((self._shaped_hypothesis(pair), pair))
        if all(hypothesis.expected(unmatched) <= FEWEST_CELLS for hypothesis, _ in hypotheses):
            return []  # whatever chance finds
        chance = max(self._shaped_hypothesis(opposite(*pairs[0])).expected(unmatched), 1.0)
        return [entry for entry in hypotheses if entry[0].expected(unmatched) > CHANCE * chance + FEWEST_CELLS]

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

    def _expected(self, pairs: list[Shapes], shown: np.ndarray) -> np.ndarray:
        """(N,): the matches that the coarsest level expects between views, of shown cells, on the other image."""
        import torch

        from pdc_sfm.network import ImageCode

        side = (COARSE_SIDE, COARSE_SIDE)
        numbers = torch.tensor(pairs).T
        with torch.inference_mode():
            maps = [code.maps(int(n.max()) + 1)[n.to(self.device)] for code, n in zip(self.codes, numbers)]
            batch = [ImageCode({4: x.float()}, {}, side, side) for x in maps]
            output = self.network.decode(batch[0], batch[1], last_level=4)[-1]
            likely = _likely(output).flatten(1).cpu().numpy()
            flow = output.flow.flatten(2).mT.cpu().numpy()  # (N, cells, 2)
        there = grid_points((GRID, GRID), side).reshape(-1, 2) + flow
        columns, rows = np.moveaxis(np.floor((there + 0.5) * GRID / COARSE_SIDE).clip(-1, GRID), -1, 0).astype(int)
        beside = np.pad(self.evidence.on_second.reshape(-1, GRID, GRID), ((0, 0), (1, 1), (1, 1)))
        lands = beside[numbers[1][:, None], rows + 1, columns + 1]
        return (likely * shown[numbers[0]] * lands).sum(1)

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


def _likely(output: LevelOutput) -> Tensor:
    """(B, h, w): the probability of lying within half a cell."""
    from pdc_sfm.dense.confidence import confidence_map

    return confidence_map(None, output.log_var, output.logits, COARSE_SIDE / output.flow.shape[-1] / 2)[:, 0]


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
