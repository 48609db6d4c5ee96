"""The local frame of given positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pycolmap

from pdc_sfm.store.positions import Positions

FAR = 10_000.0  # metres from the origin of a frame of the user's: beyond, single precision has millimetres no more
Place = tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class LocalOrigin:
    """The frame into which given places are taken: about the middle of them."""

    origin: Place | None
    offset: Place = (0.0, 0.0, 0.0)

    @classmethod
    def of(cls, places: Sequence[Sequence[float]], geographic: bool) -> LocalOrigin:
        """Rounded, so that a person can type it. Wrong places do not move a median."""
        columns = np.array(places, float).reshape(-1, 3).T
        known = [column[np.isfinite(column)] for column in columns]  # an altitude may not be
        middle = np.array([np.median(column) if len(column) else 0.0 for column in known])
        if geographic:
            return cls((round(float(middle[0]), 5), round(float(middle[1]), 5), float(round(middle[2]))))
        far = np.abs(middle).max() > FAR
        east, north, up = np.round(middle, -2).tolist() if far else (0.0, 0.0, 0.0)
        return cls(None, (east, north, up))

    def __call__(self, places: Sequence[Sequence[float]]) -> np.ndarray:
        """(N, 3) metres in this frame; an altitude that is not known is that of the origin."""
        points = np.array(places, float).reshape(-1, 3)
        if self.origin is None:
            return points - self.offset
        points[:, 2] = np.where(np.isnan(points[:, 2]), self.origin[2], points[:, 2])
        return np.asarray(pycolmap.GPSTransform().ellipsoid_to_enu(points, *self.origin))


def swapped(positions: Positions) -> list[Place] | None:
    """Places with latitude and longitude, or two axes of a frame of the user's, exchanged; None if that cannot be."""
    found = [(second, first, third) for first, second, third in positions.places.values()]
    possible = not positions.geographic or all(abs(first) <= 90 for first, _, _ in found)
    return found if possible else None
