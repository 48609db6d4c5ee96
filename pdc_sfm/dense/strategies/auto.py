"""As far as a pair deserves (beyond the paper): unrelated images end after the coarse levels, others get the fine ones. Those of
which these find little are searched as `search` does, and turned ones are matched once more with one image turned back. Images
that the coarse levels call unrelated are searched quickly, by the few best combinations of their views, and so are all without
`windows`.

What tells unrelated images is how many cells of level 3 are expected to be matches that agree both ways. With a limit of 2, on
341 pairs of eleven lists (facades, a castle, rooms, objects, a court, a town and a walk by day and night, unrelated photographs)
no pair ended of which a direct pass has a hundred matches, but for one whose 243 are all 35 pixels off. Of the demo's pairs
with a hundred matches the least has 21, of 40 pairs of a kitchen 32; unrelated photographs of buildings have up to 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate, unmatched
from pdc_sfm.dense.strategies import register
from pdc_sfm.dense.strategies.search import search_views, turn_back
from pdc_sfm.dense.view_search import FAR_TURN

if TYPE_CHECKING:
    from pdc_sfm.dense.estimator import EncodedView, Estimator
    from pdc_sfm.dense.strategies import Directions
    from pdc_sfm.network import LevelOutput

# Mutual matches among the 1024 cells of level 3, below which images are unrelated: after its first pass, none being more likely
# than one; after its last, which draws the matches of related images together, a square of two by two.
LEAST = (0.5, 4.0)
CLEARLY = 2.0  # times `search_below`, from which the coarse levels are believed: the fine ones may confirm half of it
STRIDE = 4  # pixels of the network's input per cell of an estimate


@dataclass(frozen=True)
class Triage:
    """What the coarse levels say of some pairs."""

    related: list[int]  # numbers of the pairs that go on
    upright: list[int]  # those of them of which one pass finds enough
    output: LevelOutput | None = None  # of the related all one way, then all back; None: nothing was decoded yet

    def start(self, numbers: Sequence[int], directions: Sequence[int]) -> LevelOutput | None:
        """From where the fine levels of some pairs go on, all in the first of these directions (0, 1), then in the next."""
        if self.output is None:
            return None
        place = {number: row for row, number in enumerate(self.related)}
        return self.output.take([place[n] + way * len(self.related) for way in directions for n in numbers])

    def finish(self, estimator: Estimator, number: int, directions: Directions) -> list[DenseEstimate]:
        """The estimates of a pair, in one direction or both."""
        if number not in self.related:
            first = [_nothing(estimator, *pair) for pair in directions]
            return search_views(estimator, directions, first, quick=True)
        starts = (self.start([number], [way]) for way in (0, 1))
        first = [estimator.one_pass([pair], coarse=start)[0] for pair, start in zip(directions, starts)]
        if number in self.upright or _is_enough(estimator, first):
            return turn_back(estimator, directions, first)
        return search_views(estimator, directions, first, quick=estimator.settings.windows is False)


def triage(estimator: Estimator, pairs: Sequence[tuple[EncodedView, EncodedView]]) -> Triage:
    """The coarse levels of pairs, both ways even if one is wanted.

    A CPU leaves further passes of level 3 out where the first says enough; a GPU does not stop for that.
    """
    numbers = list(range(len(pairs)))
    if estimator.network.settings.uncertainty == "none":  # nothing says how many matches to expect
        return Triage(numbers, numbers)
    from pdc_sfm.dense.coarse import mutual_matches, on_host, usual_turns

    begun = None
    if estimator.on_host:
        begun = estimator.coarse(_both_ways(pairs), passes=1)
        numbers = np.flatnonzero(mutual_matches(begun).numpy().max(0) >= LEAST[0]).tolist()
        if not numbers:
            return Triage([], [])
        begun = begun.take(_rows(numbers, len(pairs)))
    output = estimator.coarse(_both_ways([pairs[number] for number in numbers]), start=begun)
    likely, flow = on_host(output)  # which waits here, once for all pairs
    expected, turns = likely.sum((1, 2)).reshape(2, -1), usual_turns(likely, flow)
    kept = np.flatnonzero(expected.max(0) >= LEAST[1]).tolist()
    cells = output.flow.shape[-2] * output.flow.shape[-1]
    clearly = max(LEAST[1], CLEARLY * estimator.settings.search_below * cells)
    enough = np.flatnonzero((expected.min(0) >= clearly) & (turns.max(0) <= FAR_TURN)).tolist()
    if not kept:
        return Triage([], [])
    going_on = output.take(_rows(kept, len(numbers)))
    return Triage([numbers[row] for row in kept], [numbers[row] for row in enough], going_on)


@register("auto", needs_views=True, turns=True, triage=triage)
def estimate(estimator: Estimator, directions: Directions) -> list[DenseEstimate]:
    """A pair by itself; several are sorted together (`Matcher.begin`)."""
    return triage(estimator, directions[:1]).finish(estimator, 0, directions)


def _is_enough(estimator: Estimator, first: list[DenseEstimate]) -> bool:
    """Whether a pass found so much that no search is needed."""
    return min(estimator.sure(one).mean() for one in first) >= estimator.settings.search_below


def _both_ways(pairs: Sequence[tuple[EncodedView, EncodedView]]) -> list[tuple[EncodedView, EncodedView]]:
    return [*pairs, *((query, reference) for reference, query in pairs)]


def _rows(numbers: Sequence[int], pairs: int) -> list[int]:
    """Of some of so many pairs, first all one way and then all back."""
    return [way * pairs + number for way in (0, 1) for number in numbers]


def _nothing(estimator: Estimator, reference: EncodedView, query: EncodedView) -> DenseEstimate:
    """What is said of unrelated images, on the grid of the network's finest level."""
    height, width = reference.code.high_size
    sizes = reference.view.original_size, query.view.original_size
    components = estimator.network.settings.mixture.components
    return unmatched(*sizes, (width // STRIDE, height // STRIDE), components, "coarse levels")
