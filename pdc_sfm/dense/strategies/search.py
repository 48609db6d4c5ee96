"""Rotated, zoomed and tilted images (beyond the paper): one pass, then a search for pairs with few matches.

A search proposes how to see a pair; a whole pass that sees it so decides whether that is right. What this leaves without
matches is searched again: a room has many planes, and each may need a view of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.strategies import register
from pdc_sfm.dense.strategies.homography import fit_views
from pdc_sfm.dense.view_search import Proposal, ViewSearch, far_turn, is_far, shown_cells, window_around

if TYPE_CHECKING:
    from pdc_sfm.dense.estimator import EncodedView, Estimator
    from pdc_sfm.dense.strategies import Directions

PLANAR = 0.5  # of a pass's matches fit one homography: it may show what the pass missed
COMPLETE = 0.95  # of what it shows was found
ROUNDS = 2  # of proposing and passing
REMAINING = 0.25  # of both images has no match: less is not worth another pass
LOST = 3.0  # times the matches of earlier passes: what those say of the rest is worth nothing
SQUARES = 32  # along each side of an image, of which some have no matches yet
MATCHED = 0.25  # of the cells of a square


@register("search", needs_views=True, turns=True)
def estimate(estimator: Estimator, directions: Directions) -> list[DenseEstimate]:
    """The first passes; if one found little, all are tried again by views that show more."""
    first = estimator.one_pass(directions)
    if min(estimator.sure(found).mean() for found in first) < estimator.settings.search_below:
        return search_views(estimator, directions, first)
    return [_completed(estimator, pair, found) for pair, found in zip(directions, first)]


def search_views(
    estimator: Estimator,
    directions: Directions,
    first: list[DenseEstimate],
    quick: bool = False,
    unmatched: np.ndarray | None = None,
) -> list[DenseEstimate]:
    """What views of the images find of a pair of which the first passes found little; these, where that is no more.

    A `quick` search gives images up that match best as they are, and those of which few combinations show nothing. Without
    `windows` the images are seen as a whole.
    """
    image0, image1 = directions[0]
    search = ViewSearch(estimator.network, (estimator.views(image0), estimator.views(image1)), estimator.device)
    if quick and estimator.sure(first[0]).any() and search.evidence.is_upright():
        return first
    found, seen = list(first), bool(estimator.sure(first[0]).any())
    known = _known(estimator, directions, first)
    unmatched = np.ones((SQUARES, SQUARES), bool) if unmatched is None else unmatched
    for _ in range(ROUNDS):
        proposal = search.propose(unmatched, known, quick, estimator.settings.windows is False, seen)
        more = None if proposal is None else _passed(estimator, directions, found, proposal)
        if more is None:
            break
        found, known, quick = more, None, False  # they are related: what is left is worth a thorough search
        left = [_unmatched(estimator.sure(one)) for one in found]
        if min(part.mean() for part in left) < REMAINING:
            break
        unmatched = left[0]
    if found[0] is first[0] and first[0].method != "search":
        return [replace(one, method=f"{one.method} (search found none)") for one in first]
    return [replace(one, method="search") for one in found]


def _completed(estimator: Estimator, pair: tuple[EncodedView, EncodedView], first: DenseEstimate) -> DenseEstimate:
    """A pass that found a plane, but not all of it or at the limit of its reach, is followed by one through its homography."""
    fit = fit_views(estimator, first, *(encoded.view for encoded in pair))
    if fit is None or fit.share < PLANAR:
        return first
    sure = estimator.sure(first)
    complete = sure[shown_cells(first, fit.query_from_reference)].mean() > COMPLETE
    if complete and not is_far(first, sure, *(encoded.view for encoded in pair)):
        return first
    second = _closer_pass(estimator, pair, first, fit.query_from_reference).filled_from(first)
    return replace(second, method="search") if estimator.sure(second).sum() >= sure.sum() else first


def turn_back(estimator: Estimator, directions: Directions, first: list[DenseEstimate]) -> list[DenseEstimate]:
    """Passes that found enough of a turned image, followed by passes that see it upright: these find more, more exactly. What
    they leave may be turned otherwise, and is searched."""
    turn = far_turn(first[0], estimator.sure(first[0]), *(encoded.view for encoded in directions[0]))
    joined = _passed(estimator, directions, first, Proposal(np.eye(3), -turn, 0.0), least=0) if turn else None
    if joined is None:
        return first
    left = [_unmatched(estimator.sure(one)) for one in joined]
    joined = [replace(one, method="search") for one in joined]
    enough = min(part.mean() for part in left) < REMAINING
    return joined if enough else search_views(estimator, directions, joined, unmatched=left[0])


def _known(estimator: Estimator, directions: Directions, first: list[DenseEstimate]) -> np.ndarray | None:
    """image1_from_image0 that what the first passes are sure of agrees on."""
    fits = [fit_views(estimator, found, *(e.view for e in pair)) for found, pair in zip(first, directions)]
    if not any(fits):
        return None
    n, fit = max(((n, fit) for n, fit in enumerate(fits) if fit), key=lambda entry: entry[1].inliers)
    return fit.query_from_reference if n == 0 else np.linalg.inv(fit.query_from_reference)


def _passed(
    estimator: Estimator,
    directions: Directions,
    found: list[DenseEstimate],
    proposal: Proposal,
    least: int | None = None,
) -> list[DenseEstimate] | None:
    """The estimates so far joined with passes by a proposal; None if these add fewer sure cells than `least` (or by settings)."""
    seen = _seen(estimator, directions, found[0], proposal)
    if min(estimator.sure(one).sum() for one in seen) < estimator.settings.min_matches:
        return None
    joined = [_joined(estimator, before, second.resampled(before.grid_size)) for before, second in zip(found, seen)]
    counts = [sum(int(estimator.sure(one).sum()) for one in some) for some in (found, joined)]
    return joined if counts[1] >= counts[0] + (estimator.settings.min_matches if least is None else least) else None


def _seen(
    estimator: Estimator, directions: Directions, before: DenseEstimate, proposal: Proposal
) -> list[DenseEstimate]:
    """Passes in the directions of a pair as it is proposed to be seen: one view of image1 is encoded for both."""
    image0, image1 = directions[0]
    if proposal.turn is None:
        image0 = _closer(estimator, image0, before, proposal.image1_from_image0)
        view = image1.view.seen_from(image0.view, proposal.image1_from_image0)
    else:
        view = image1.view.rotated(proposal.turn)
    image1 = estimator.encode_view(view)
    pairs = [(image0, image1), (image1, image0)][: len(directions)]
    return [estimator.one_pass([pair])[0] for pair in pairs]


def _joined(estimator: Estimator, before: DenseEstimate, second: DenseEstimate) -> DenseEstimate:
    """Of each cell what is surer, so that the flow may jump; only the second, if it makes the first look lost."""
    if estimator.sure(second).sum() > LOST * estimator.sure(before).sum():
        return second
    surer = second.valid & (~before.valid | (second.confidence >= before.confidence))
    return replace(second, valid=surer).filled_from(before)


def _unmatched(sure: np.ndarray) -> np.ndarray:
    """(SQUARES, SQUARES) bool: squares of an image, whose cells (h, w) are sure or not, without matches."""
    import cv2

    return cv2.resize(sure.astype(np.float32), (SQUARES, SQUARES), interpolation=cv2.INTER_AREA) < MATCHED


def _closer_pass(
    estimator: Estimator,
    pair: tuple[EncodedView, EncodedView],
    first: DenseEstimate,
    query_from_reference: np.ndarray,
) -> DenseEstimate:
    """A pass to the query warped by a homography, over the part of the reference that it shows, magnified if it is small."""
    reference, query = _closer(estimator, pair[0], first, query_from_reference), pair[1]
    warped = estimator.encode_view(query.view.seen_from(reference.view, query_from_reference))
    return estimator.one_pass([(reference, warped)])[0].resampled(first.grid_size)


def _closer(
    estimator: Estimator, reference: EncodedView, before: DenseEstimate, query_from_reference: np.ndarray
) -> EncodedView:
    """The part of the reference that the query shows by a homography, magnified if it is small."""
    window = window_around(shown_cells(before, query_from_reference))
    return reference if window is None else estimator.encode_view(reference.view.zoomed(*window))
