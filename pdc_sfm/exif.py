"""When and where a photograph was taken, from EXIF."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

EXIF_IFD, GPS_IFD = 0x8769, 0x8825
TAKEN, CHANGED = 0x9003, 0x0132  # DateTimeOriginal, DateTime
LATITUDE, LONGITUDE = (1, 2), (3, 4)  # hemisphere, and degrees, minutes, seconds
ALTITUDE, BELOW, ERROR = 6, 5, 31  # metres, whether below the sea, metres of horizontal error


@dataclasses.dataclass(frozen=True)
class Taken:
    """When and where a photograph was taken; None if its file does not say."""

    time: datetime.datetime | None = None
    place: tuple[float, float] | None = None  # degrees north, degrees east
    altitude: float | None = None  # metres
    error: float | None = None  # metres, of the place


def read_taken(path: Path) -> Taken:
    """What a file says; nothing if it is damaged, or no file (a pipe would be waited for)."""
    from PIL import Image

    if not path.is_file():
        return Taken()
    try:
        with Image.open(path) as image:
            exif = image.getexif()
            inner, gps = exif.get_ifd(EXIF_IFD), exif.get_ifd(GPS_IFD)
            time, place = _time(inner.get(TAKEN) or exif.get(CHANGED)), _place(gps)
            if place is None:
                return Taken(time)
            return Taken(time, place, _altitude(gps), _number(gps.get(ERROR), 0.0, 1e5) or None)
    except (OSError, ValueError, SyntaxError, TypeError, KeyError, OverflowError, ArithmeticError):
        return Taken()


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


def _altitude(gps: Mapping[int, Any]) -> float | None:
    found = _number(gps.get(ALTITUDE), -1e5, 1e5)
    below = gps.get(BELOW, 0)
    return -found if found is not None and (below in (1, b"\1", "1")) else found


def _number(value: Any, least: float, most: float) -> float | None:
    """A finite number within limits; None if it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return number if least <= number <= most else None
