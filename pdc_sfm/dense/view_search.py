"""Searches rotated, tilted and zoomed views for a pair that one pass does not match (beyond the paper).

The views of both images are encoded once (`view_codes.py`). A pair compares the coarsest features of some hundred combinations
of them (`view_evidence.py`), has the coarsest level of the network decide between the best of these, and the next level
between the best of those. What comes out is a homography, or a turn, by which a whole pass is worth its time. At every level
what counts is the matches that agree both ways: one way the network expects some between any two images, at their borders, in
the sky, between things that repeat, but there and back they hardly meet by chance.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.homography_fit import fit_points
from pdc_sfm.dense.view_codes import GRID, SHAPES, ViewCodes, encode_coarse, places
from pdc_sfm.dense.view_evidence import STANDING, ViewEvidence, part_at
from pdc_sfm.dense.views import View
from pdc_sfm.pixels import COARSE_SIDE, grid_points, inside, transform

if TYPE_CHECKING:
    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.network import ImageCode, LevelOutput, PDCNet

SHORTLIST, QUICK = 16, 4  # combinations that the coarsest level decodes
HYPOTHESES, FIRST_HYPOTHESES = 4, 2  # of them that the next level decodes, and those of a quick search
# of those that its further passes decode: a related pair has two to five times as many matches after them
FINAL_HYPOTHESES = 2
# How far the best combination stands out by its features, times the matches of the coarsest level: less ends a quick search.
# Chosen with 57 pairs (rooms, made zooms and sides), of which three had less, and 55 unrelated ones, about two thirds, in view.
LEAST_STANDING = 18.0
LEAST = 4.0  # matches of the next level after its first pass, a square of two by two: a quick search decodes less no further
# Matches of the next level, of 32x32, that a whole pass is worth, and likely cells that a homography is fitted to. Of the
# weakest of the same pairs right ones had 27 or more, unrelated ones up to 16, but for two (54 and 115): not held out.
FEWEST_CELLS = 24
RANSAC_THRESHOLD = 4.0  # pixels of the branch, half a cell
FAR_ZOOM, FAR_TURN = 1.7, 25.0  # along any direction; degrees: beyond them a pass finds only a part
LARGEST_PART = 0.7  # of the reference's sides: what the query shows of it is magnified if it is less
ROOM = 1.1  # around it
Shapes = tuple[int, int]  # of both images, numbers of `SHAPES`


@dataclass(frozen=True)
class ViewHypothesis:
    """What the 256x256 branch finds between two views, of the part of the first image that has no match yet."""

    views: tuple[View, View]
    output: LevelOutput  # both ways
    likely: np.ndarray  # (2, n, n): the probability of a match that agrees both ways, of the cells of both views

    @property
    def expected(self) -> float:
        """Matches, on average of both ways."""
        return float(self.likely.sum()) / 2

    @functools.cached_property
    def covered(self) -> float:
        """The share of the images that they cover, on average: a magnified view has more cells for the same."""
        parts = [view.cell_areas(likely.shape) for view, likely in zip(self.views, self.likely)]
        return float(np.mean([(likely * part).sum() for likely, part in zip(self.likely, parts)]))

    def homography(self) -> np.ndarray | None:
        """image1_from_image0 (3, 3) that its likely cells agree on; None if they do not."""
        from pdc_sfm.dense.coarse import LIKELY

        chosen = self.likely[0] > LIKELY
        if chosen.sum() < FEWEST_CELLS:
            return None
        here = grid_points(chosen.shape, self.views[0].size)
        there = here + self.output.flow[0].permute(1, 2, 0).cpu().numpy()
        found = fit_points(here[chosen], there[chosen], FEWEST_CELLS, RANSAC_THRESHOLD)
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
        self,
        unmatched: np.ndarray,
        known: np.ndarray | None = None,
        quick: bool = False,
        whole: bool = False,
        seen: bool = False,
    ) -> Proposal | None:
        """The way to see the pair that shows most of the part of image0, (h, w) bool, that has no match yet.

        `known` is a homography that may show more than it has shown so far. A `quick` search decodes few combinations: most pairs
        it ends in milliseconds. One of `whole` images turns and squeezes them, and does without windows. A pair that
        was `seen` as it is is not proposed to be seen so again. None: nothing stands out from chance.
        """
        shown = self.evidence.shown(unmatched)
        pairs, standing = self.evidence.shortlist(shown, QUICK if quick else SHORTLIST, whole)
        if quick and standing < STANDING:
            return None
        matches = self._matches(pairs, shown)
        if quick and standing * matches.max() < LEAST_STANDING:
            return None
        ranked = [pairs[n] for n in np.argsort(-matches) if pairs[n] != (0, 0) or not seen]
        hypotheses: list[tuple[ViewHypothesis, Shapes | None]] = []
        if known is not None:
            hypotheses.append((self._through(self._shaped(0, 0), known, unmatched), None))
        for pair in ranked[: FIRST_HYPOTHESES if quick else HYPOTHESES]:
            hypotheses.append((self._hypothesis(*self._shown(pair), unmatched), pair))
        hypotheses = sorted(hypotheses, key=_covered, reverse=True)[:FINAL_HYPOTHESES]
        worth = [entry for entry in hypotheses if not quick or entry[0].expected >= LEAST]
        further = [(self._finished(one, unmatched), pair) for one, pair in worth]
        likely = [entry for entry in further if entry[0].expected >= FEWEST_CELLS]
        return self._refined(*max(likely, key=_covered), unmatched) if likely else None

    def _refined(self, hypothesis: ViewHypothesis, shapes: Shapes | None, unmatched: np.ndarray) -> Proposal:
        """The homography of a hypothesis, if the pair seen through it shows more."""
        homography = hypothesis.homography()
        if homography is not None:
            through = self._finished(self._through(hypothesis.views[0], homography, unmatched), unmatched)
            if through.covered >= hypothesis.covered:
                return Proposal(homography, None, through.expected)
        turn = None
        if shapes is not None and {SHAPES[n].zoom for n in shapes} == {1.0}:
            turn = SHAPES[shapes[1]].turn - SHAPES[shapes[0]].turn
        return Proposal(hypothesis.placed(np.eye(3)), turn, hypothesis.expected)

    # --- the coarsest level ------------------------------------------------------------------------------------------

    def _matches(self, pairs: list[Shapes], shown: np.ndarray) -> np.ndarray:
        """(N,): the matches that the coarsest level expects between views, of shown cells, on average of both ways."""
        import torch

        from pdc_sfm.dense.coarse import mutual_probability
        from pdc_sfm.network import ImageCode

        side = (COARSE_SIDE, COARSE_SIDE)
        numbers = torch.tensor(pairs).T
        masks = np.concatenate((shown[numbers[0]], self.evidence.on_second[numbers[1]])).reshape(-1, GRID, GRID)
        with torch.inference_mode():
            maps = [code.maps(int(n.max()) + 1)[n.to(self.device)].float() for code, n in zip(self.codes, numbers)]
            there, back = (ImageCode({4: torch.cat(some)}, {}, side, side) for some in (maps, maps[::-1]))
            output = self.network.decode(there, back, last_level=4)[-1]
            likely = mutual_probability(output, torch.from_numpy(masks).to(output.flow))
        return likely.sum((1, 2)).view(2, -1).mean(0).cpu().numpy()

    # --- the next level ----------------------------------------------------------------------------------------------

    def _shaped(self, image: int, number: int) -> View:
        return self.codes[image].view.on_canvas(COARSE_SIDE, SHAPES[number])

    def _code(self, view: View) -> ImageCode:
        """Of a view, once: several hypotheses have one in common."""
        key = id(view.source), view.original_from_view.tobytes()
        if key not in self._codes:
            self._codes[key] = encode_coarse(self.network, [view], self.device)
        return self._codes[key]

    def _shown(self, pair: Shapes) -> tuple[View, View]:
        return self._shaped(0, pair[0]), self._shaped(1, pair[1])

    def _through(self, view: View, homography: np.ndarray, unmatched: np.ndarray) -> ViewHypothesis:
        return self._hypothesis(view, self.codes[1].view.seen_from(view, homography), unmatched)

    def _finished(self, begun: ViewHypothesis, unmatched: np.ndarray) -> ViewHypothesis:
        """A hypothesis after all passes of the level."""
        return self._hypothesis(*begun.views, unmatched, begun.output)

    def _hypothesis(
        self, first: View, second: View, unmatched: np.ndarray, start: LevelOutput | None = None
    ) -> ViewHypothesis:
        """After the first pass of the level, or after all if it has begun."""
        import torch

        from pdc_sfm.dense.coarse import mutual_probability
        from pdc_sfm.network import LevelOutput

        starts = [None, None] if start is None else [start.take([0]), start.take([1])]
        codes = self._code(first), self._code(second)
        with torch.inference_mode():
            found: list[LevelOutput] = []
            for pair, begun in zip((codes, codes[::-1]), starts):
                outputs = self.network.decode(*pair, last_level=3, passes=None if begun else 1, coarse=begun)
                last = outputs[-1] if outputs else begun  # none: the first pass was the last
                assert last is not None
                found.append(last)
            output = LevelOutput.cat(found)
            cells = output.flow.shape[-1]
            places0, places1 = places(first, cells), places(second, cells)
            masks = np.stack((part_at(unmatched, places0, first), np.isfinite(places1).all(-1)))
            likely = mutual_probability(output, torch.from_numpy(masks).to(output.flow))
        return ViewHypothesis((first, second), output, likely.cpu().numpy())


def _covered(entry: tuple[ViewHypothesis, Shapes | None]) -> float:
    return entry[0].covered


def is_far(estimate: DenseEstimate, sure: np.ndarray, reference: View, query: View) -> bool:
    """Whether the surest cells (h, w) are so turned, zoomed or tilted, as the network sees the images, that it loses others."""
    derivative = _usual_derivative(estimate, sure, reference, query)
    if derivative is None:
        return True
    longest, shortest = np.linalg.svd(derivative, compute_uv=False)  # tilt makes them differ
    return bool(longest > FAR_ZOOM or shortest < 1 / FAR_ZOOM or abs(_turn(derivative)) > FAR_TURN)


def far_turn(estimate: DenseEstimate, sure: np.ndarray, reference: View, query: View) -> float:
    """Degrees by which the query is turned counter-clockwise against the reference, where a pass loses cells by it; else 0."""
    derivative = _usual_derivative(estimate, sure, reference, query)
    turn = 0.0 if derivative is None else -_turn(derivative)  # y points down
    return turn if abs(turn) > FAR_TURN else 0.0


def _turn(derivative: np.ndarray) -> float:
    return float(np.degrees(np.arctan2(derivative[1, 0] - derivative[0, 1], np.trace(derivative))))


def _usual_derivative(estimate: DenseEstimate, sure: np.ndarray, reference: View, query: View) -> np.ndarray | None:
    """(2, 2): how places in the query move with those in the reference, at most of the sure cells (h, w); None if none are."""
    together = sure[:-1, :-1] & sure[1:, :-1] & sure[:-1, 1:]
    if not together.any():
        return None
    points = estimate.query_points * np.divide(query.size, query.original_size)
    spacing = np.divide(reference.size, estimate.grid_size)
    across = (points[:-1, 1:] - points[:-1, :-1])[together] / spacing[0]
    down = (points[1:, :-1] - points[:-1, :-1])[together] / spacing[1]
    return np.stack((np.median(across, 0), np.median(down, 0)), 1)


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
