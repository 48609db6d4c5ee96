"""Pairs of photographs taken close to each other in time or space."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pdc_sfm.exif import Taken
from pdc_sfm.store.pair_lists import Pair


def time_pairs(taken: Mapping[str, Taken], count: int) -> list[Pair]:
    """Each photograph with the next `count` in time, of those that have one."""
    dated = sorted((found.time, name) for name, found in taken.items() if found.time is not None)
    names = [name for _, name in dated]
    return [(name, other) for k, name in enumerate(names) for other in names[k + 1 : k + 1 + count]]


def place_pairs(places: Mapping[str, np.ndarray], count: int) -> list[Pair]:
    """Each photograph of those that have a place (3,), in any unit, with the `count` nearest."""
    from scipy.spatial import cKDTree

    names = list(places)
    if len(names) < 2 or count < 1:
        return []
    points = np.array([places[name] for name in names])
    _, nearest = cKDTree(points).query(points, min(count + 1, len(names)))
    return [(names[k], names[other]) for k, row in enumerate(nearest) for other in row if other != k]
