"""Forward-backward consistency (Meister et al.), the usual alternative to a predicted confidence."""

from __future__ import annotations

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate


def cyclic_error(forward: DenseEstimate, backward: DenseEstimate) -> np.ndarray:
    """How far each cell of the reference is from itself after going to the query and back: (h, w) original pixels.

    Infinite where the way leads out of one of the images.
    """
    return cyclic_error_at(forward.reference_points, forward.query_points, forward.valid, backward)


def cyclic_error_at(reference: np.ndarray, query: np.ndarray, valid: np.ndarray, backward: DenseEstimate) -> np.ndarray:
    """The same for points (..., 2) of the reference that correspond to points (..., 2) of the query."""
    flow, stays = backward.flow_at(query)
    x, y = np.moveaxis(query + flow - reference, -1, 0)
    return np.where(valid & stays, np.sqrt(x * x + y * y), np.inf).astype(np.float32)
