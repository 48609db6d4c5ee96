"""(MS): as (H), with the best homography of passes at several scales."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pdc_sfm.dense.strategies import register
from pdc_sfm.dense.strategies.homography import fit_views, warped_pass

if TYPE_CHECKING:
    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.dense.estimator import EncodedView, Estimator
    from pdc_sfm.dense.homography_fit import Fit
    from pdc_sfm.dense.strategies import Directions

    Codes = dict[tuple, EncodedView]  # of the smaller views of one pair: both directions use them


@register("multiscale")
def estimate(estimator: Estimator, directions: Directions) -> list[DenseEstimate]:
    """A direction without a homography at any scale keeps its pass at scale 1."""
    codes: Codes = {}
    found = []
    for reference, query in directions:
        first, fit = _best_scale(estimator, reference, query, codes)
        if fit is None:
            found.append(replace(first, method="direct (multiscale found none)"))
        else:
            second = warped_pass(estimator, (reference, query), first, fit.query_from_reference)
            found.append(replace(second, method="multiscale"))
    return found


def _best_scale(
    estimator: Estimator, reference: EncodedView, query: EncodedView, codes: Codes
) -> tuple[DenseEstimate, Fit | None]:
    """Of the passes over all scales the one whose homography has the highest share of inliers (then: most)."""
    passes = []
    for scale in estimator.settings.scales:
        smaller = _shrunk(estimator, reference, min(scale, 1.0), codes)
        other = _shrunk(estimator, query, min(1 / scale, 1.0), codes)
        first = estimator.one_pass([(smaller, other)], subpixel=False)[0]
        fit = fit_views(estimator, first, smaller.view, other.view)
        if fit is not None:
            passes.append((first, fit))
    if not passes:
        return estimator.one_pass([(reference, query)])[0], None
    first, fit = max(passes, key=lambda entry: (round(entry[1].share, 2), entry[1].matches))
    height, width = reference.code.high_size
    return first.resampled((width // first.stride, height // first.stride)), fit


def _shrunk(estimator: Estimator, encoded: EncodedView, factor: float, codes: Codes) -> EncodedView:
    """The code of the view made smaller, computed once for each size.

    It stays on a canvas of the same size: the network's 256x256 branch would undo mere resizing.
    """
    if factor == 1:
        return encoded
    view = encoded.view.zoomed(factor)
    key = (id(view.source), view.size, view.original_from_view.tobytes())
    if key not in codes:
        codes[key] = estimator.encode_view(view)
    return codes[key]
