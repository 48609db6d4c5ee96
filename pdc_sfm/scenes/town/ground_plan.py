"""The plan of the square: facades on a rectangle, a lane for cars, a raised middle."""

from __future__ import annotations

import numpy as np

HALF = (18.0, 14.0)  # half extents between the facades, metres
ISLAND = (11.0, 7.0)  # half extents of the raised middle
SIDEWALK = 2.6  # width of the pavement before the facades
KERB = 0.12
STREET = 5.0  # width of the four streets, one at each corner
_MID = ((HALF[0] - SIDEWALK + ISLAND[0]) / 2, (HALF[1] - SIDEWALK + ISLAND[1]) / 2)
LANE = np.array(
    [(-_MID[0], -_MID[1]), (_MID[0], -_MID[1]), (_MID[0], _MID[1]), (-_MID[0], _MID[1])]
)  # middle of the lane


def ground_height(spot: np.ndarray) -> float:
    """Height of the pavement at (x, y): the middle and the edges of the square are raised by a kerb."""
    inside = abs(spot[0]) < ISLAND[0] and abs(spot[1]) < ISLAND[1]
    outside = abs(spot[0]) > HALF[0] - SIDEWALK or abs(spot[1]) > HALF[1] - SIDEWALK
    return KERB if inside or outside else 0.0
