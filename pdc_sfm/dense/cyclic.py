"""Forward-backward consistency (Meister et al.), the usual alternative to a predicted confidence."""

from __future__ import annotations

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate


def cyclic_error_at(reference: np.ndarray, query: np.ndarray, valid: np.ndarray, backward: DenseEstimate) -> np.ndarray:
    """How far points (..., 2) of the reference, which correspond to points (..., 2) of the query, are from themselves after
    going there and back: (...) original pixels, infinite where the way leads out of one of the images.

    `field.cyclic_error` is the same for all cells at once.
    """
    flow, stays = backward.flow_at(query)
    x, y = np.moveaxis(query + flow - reference, -1, 0)
    return np.where(valid & stays, np.sqrt(x * x + y * y), np.inf).astype(np.float32)
