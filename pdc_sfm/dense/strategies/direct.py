"""(D): one pass of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdc_sfm.dense.strategies import register

if TYPE_CHECKING:
    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.dense.estimator import Estimator
    from pdc_sfm.dense.strategies import Directions


@register("direct", is_one_pass=True)
def estimate(estimator: Estimator, directions: Directions) -> list[DenseEstimate]:
    """Each direction by itself: a CPU takes as long for a batch, and more memory."""
    return [estimator.one_pass([pair])[0] for pair in directions]
