"""Pairs of photographs taken soon after each other or near each other, by what their files say (EXIF)."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.store.pair_lists import Pair

EXIF_IFD, GPS_IFD = 0x8769, 0x8825
TAKEN, CHANGED = 0x9003, 0x0132  # DateTimeOriginal, DateTime
LATITUDE, LONGITUDE = (1, 2), (3, 4)  # hemisphere, and degrees, minutes, seconds
RADIUS = 6_371_000.0  # metres, of the earth


@dataclasses.dataclass(frozen=True)
class Taken:
    """When and where a photograph was taken; None if its file does not say."""

    time: datetime.datetime | None = None
    place: tuple[float, float] | None = None  # degrees north, degrees east


def read_taken(path: Path) -> Taken:
    """What a file says; nothing if it is damaged."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            exif = image.getexif()
            inner, gps = exif.get_ifd(EXIF_IFD), exif.get_ifd(GPS_IFD)
            return Taken(_time(inner.get(TAKEN) or exif.get(CHANGED)), _place(gps))
    except (OSError, ValueError, SyntaxError, TypeError, KeyError, OverflowError, ArithmeticError):
        return Taken()


def time_pairs(taken: Mapping[str, Taken], count: int) -> list[Pair]:
    """Each photograph with the next `count` in time, of those that have one."""
    dated = sorted((found.time, name) for name, found in taken.items() if found.time is not None)
    names = [name for _, name in dated]
    return [(name, other) for k, name in enumerate(names) for other in names[k + 1 : k + 1 + count]]


def place_pairs(taken: Mapping[str, Taken], count: int) -> list[Pair]:
    """Each photograph with the `count` nearest, of those that have a place."""
    from scipy.spatial import cKDTree

    placed = {name: found.place for name, found in taken.items() if found.place is not None}
    names = list(placed)
    if len(names) < 2 or count < 1:
        return []
    north, east = np.deg2rad(np.array([placed[name] for name in names])).T
    points = RADIUS * np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], 1)
    _, nearest = cKDTree(points).query(points, min(count + 1, len(names)))
    return [(names[k], names[other]) for k, row in enumerate(nearest) for other in row if other != k]


def _time(text: Any) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(str(text).strip("\0 "), "%Y:%m:%d %H:%M:%S")
    except ValueError:
        return None


def _place(gps: Mapping[int, Any]) -> tuple[float, float] | None:
    degrees = []
    for (side, value), negative, most in ((LATITUDE, "S", 90), (LONGITUDE, "W", 180)):
        if value not in gps:
            return None
        parts = [float(part) for part in gps[value]]
        angle = sum(part / 60**k for k, part in enumerate(parts))
        if not math.isfinite(angle) or abs(angle) > most:
            return None
        degrees.append(-angle if str(gps.get(side, "")).strip("\0 ").upper() == negative else angle)
    if degrees == [0.0, 0.0]:  # what devices write that know no place
        return None
    return degrees[0], degrees[1]
