"""(H): the homography of a first pass's matches, and a second pass to the query warped by it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.homography_fit import Fit, fit_homography
from pdc_sfm.dense.strategies import register

if TYPE_CHECKING:
    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.dense.estimator import EncodedView, Estimator
    from pdc_sfm.dense.strategies import Directions
    from pdc_sfm.dense.views import View


@register("homography")
def estimate(estimator: Estimator, directions: Directions) -> list[DenseEstimate]:
    """A direction whose matches agree on no homography keeps its first pass."""
    found = []
    for reference, query in directions:
        first = estimator.one_pass([(reference, query)])[0]
        fit = fit_views(estimator, first, reference.view, query.view)
        if fit is None:
            found.append(replace(first, method="direct (homography found none)"))
        else:
            second = warped_pass(estimator, (reference, query), first, fit.query_from_reference)
            found.append(replace(second, method="homography"))
    return found


def fit_views(estimator: Estimator, estimate: DenseEstimate, reference: View, query: View) -> Fit | None:
    """The homography of an estimate's matches, by the settings."""
    settings = estimator.settings
    return fit_homography(
        estimate,
        reference.seen_size,
        query.seen_size,
        threshold=settings.threshold,
        min_matches=settings.min_matches,
        ransac_threshold=settings.ransac_threshold,
    )


def warped_pass(
    estimator: Estimator,
    pair: tuple[EncodedView, EncodedView],
    first: DenseEstimate,
    query_from_reference: np.ndarray,
) -> DenseEstimate:
    """The fine flow to the query warped by the homography; where that shows nothing, the first pass stays."""
    reference, query = pair
    warped = estimator.encode_view(query.view.seen_from(reference.view, query_from_reference))
    return estimator.one_pass([(reference, warped)])[0].resampled(first.grid_size).filled_from(first)
