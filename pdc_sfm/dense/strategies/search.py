"""Turned, zoomed and tilted images (beyond the paper): one pass, and for pairs of which it finds little a search.

What a search proposes is a homography; a pass through it decides whether it is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.strategies import register
from pdc_sfm.dense.strategies.homography import fit_views, warped_pass
from pdc_sfm.dense.view_search import ViewSearch, is_far, shown_cells, window_around

if TYPE_CHECKING:
    from pdc_sfm.dense.estimator import EncodedView, Estimator
    from pdc_sfm.dense.strategies import Directions

CONFIRMED = 0.6  # of what both images should show is sure: the search ends
PLANAR = 0.5  # of a pass's matches fit one homography: it may show what the pass missed
COMPLETE = 0.95  # of what it shows was found


@dataclass(frozen=True)
class Trial:
    """What became of a homography of the search."""

    share: float  # of what it says that both images show, sure after a pass through it
    homographies: tuple[np.ndarray, ...] = ()  # query_from_reference (3, 3) of both directions
    estimates: dict[int, DenseEstimate] = field(default_factory=dict)  # passes through it so far, by direction

    @property
    def confirmed(self) -> bool:
        return self.share >= CONFIRMED


@register("search", needs_keypoints=True, turns=True)
def estimate(estimator: Estimator, directions: Directions) -> list[DenseEstimate]:
    """The first passes; if one found little, all are tried again through the homography that shows most."""
    first = estimator.one_pass(directions)
    if not any(_is_weak(estimator, found, *pair) for found, pair in zip(first, directions)):
        return [_completed(estimator, pair, found) for pair, found in zip(directions, first)]
    return search_views(estimator, directions, first)


def search_views(estimator: Estimator, directions: Directions, first: list[DenseEstimate]) -> list[DenseEstimate]:
    """What views of the images find of a pair of which the first passes found little; these, where that is no more."""
    best = Trial(0.0)
    for homography in _homographies(estimator, directions, first):
        best = max(best, _trial(estimator, directions, first, homography), key=lambda trial: trial.share)
        if best.confirmed:
            break
    return [_searched(estimator, n, directions[n], found, best) for n, found in enumerate(first)]


def _is_weak(estimator: Estimator, first: DenseEstimate, reference: EncodedView, query: EncodedView) -> bool:
    """Whether a pass found little, or is at the limit of what it can find."""
    sure = estimator.sure(first)
    return bool(sure.mean() < estimator.settings.search_below) or is_far(first, sure, reference.view, query.view)


def _completed(estimator: Estimator, pair: tuple[EncodedView, EncodedView], first: DenseEstimate) -> DenseEstimate:
    """A pass that found a plane but not all of it is followed by one through the plane's homography."""
    fit = fit_views(estimator, first, *(encoded.view for encoded in pair))
    if fit is None or fit.share < PLANAR:
        return first
    sure = estimator.sure(first)
    if sure[shown_cells(first, fit.query_from_reference)].mean() > COMPLETE:
        return first
    second = _closer_pass(estimator, pair, first, fit.query_from_reference)
    return replace(second, method="search") if estimator.sure(second).sum() > sure.sum() else first


def _homographies(estimator: Estimator, directions: Directions, first: list[DenseEstimate]) -> Iterator[np.ndarray]:
    """Candidates for image1_from_image0, cheap ones first: from what the first passes are sure of, then searched."""
    fits = [fit_views(estimator, found, *(e.view for e in pair)) for found, pair in zip(first, directions)]
    if any(fits):
        n, fit = max(((n, fit) for n, fit in enumerate(fits) if fit), key=lambda entry: entry[1].inliers)
        yield fit.query_from_reference if n == 0 else np.linalg.inv(fit.query_from_reference)
    settings = estimator.settings
    yield from ViewSearch(
        estimator.network, directions[0], settings.threshold, estimator.device, settings.view_search
    ).homographies()


def _trial(estimator: Estimator, directions: Directions, first: list[DenseEstimate], homography: np.ndarray) -> Trial:
    """A pass through it in the easier direction, whose reference is the nearer view: it shows more of the other."""
    homographies = (homography, np.linalg.inv(homography))
    shown = [shown_cells(found, h) for found, h in zip(first, homographies)]
    n = int(np.argmax([part.mean() for part in shown]))
    second = _closer_pass(estimator, directions[n], first[n], homographies[n])
    sure = (estimator.sure(second) & shown[n]).sum()
    share = sure / shown[n].sum() if sure >= estimator.settings.min_matches else 0.0
    return Trial(share, homographies, {n: second})


def _searched(
    estimator: Estimator, n: int, pair: tuple[EncodedView, EncodedView], first: DenseEstimate, best: Trial
) -> DenseEstimate:
    """The pass of direction n through the best homography, if that was confirmed or at least more is sure."""
    if best.share:
        homography = best.homographies[n]
        second = best.estimates[n] if n in best.estimates else _closer_pass(estimator, pair, first, homography)
        if best.confirmed:  # what the first pass, lost, says of the rest is worth nothing
            return replace(second, valid=second.valid & shown_cells(first, homography), method="search")
        if estimator.sure(second).sum() > estimator.sure(first).sum():
            return replace(second, method="search")
    return replace(first, method="direct (search found none)")


def _closer_pass(
    estimator: Estimator,
    pair: tuple[EncodedView, EncodedView],
    first: DenseEstimate,
    query_from_reference: np.ndarray,
) -> DenseEstimate:
    """A second pass over the part of the reference that the query shows, magnified if it is small."""
    reference, query = pair
    window = window_around(shown_cells(first, query_from_reference))
    if window is not None:
        reference = estimator.encode_view(reference.view.zoomed(*window))
    return warped_pass(estimator, (reference, query), first, query_from_reference)
