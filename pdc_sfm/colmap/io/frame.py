"""The frame of a map in metres, written next to the model: its origin, and the uncertainty of its scale."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from pdc_sfm.errors import FormatError

FRAME = "frame.json"


@dataclasses.dataclass(frozen=True)
class MapFrame:
    """Metres. With an origin on the earth, x is east, y north and z up."""

    # latitude, longitude (degrees) and altitude (metres, as the positions have it); None: a frame of the user's
    origin: tuple[float, float, float] | None
    scale_sigma: float  # relative, of one standard deviation
    fitted: str  # what it was found by
    residual: float  # metres, root mean square of what agrees
    offset: tuple[float, float, float] = (
        0.0,
        0.0,
        0.0,
    )  # of a frame of the user's: to be added to the map's coordinates

    def geographic(self, points: np.ndarray) -> np.ndarray:
        """Latitude, longitude and altitude (N, 3) of points (N, 3) of the map."""
        if self.origin is None:
            raise FormatError("the map's frame has no origin on the earth")
        return np.asarray(
            pycolmap.GPSTransform().enu_to_ellipsoid(np.asarray(points, float).reshape(-1, 3), *self.origin)
        )

    def from_geographic(self, places: np.ndarray) -> np.ndarray:
        """Points (N, 3) of the map at latitudes, longitudes and altitudes (N, 3)."""
        if self.origin is None:
            raise FormatError("the map's frame has no origin on the earth")
        return np.asarray(
            pycolmap.GPSTransform().ellipsoid_to_enu(np.asarray(places, float).reshape(-1, 3), *self.origin)
        )

    def world(self, points: np.ndarray) -> np.ndarray:
        """Points (N, 3) of the map in the user's own coordinates: geographic, or with the offset."""
        return np.asarray(points) + self.offset if self.origin is None else self.geographic(points)

    def to_dict(self) -> dict[str, Any]:
        keys = ("latitude", "longitude", "altitude")
        return {
            "unit": "metres",
            "axes": "as given" if self.origin is None else "x east, y north, z up",
            "origin": None if self.origin is None else dict(zip(keys, self.origin)),
            "offset": list(self.offset),
            "scale_sigma": self.scale_sigma,
            "fitted": self.fitted,
            "residual": self.residual,
        }


def read_frame(model: Path | str) -> MapFrame | None:
    """The frame of the model in a folder; None if it has none, so that its unit is not known."""
    path = Path(model) / FRAME
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["unit"] != "metres":
            return None
        origin = content["origin"]
        place = None if origin is None else _three(origin[key] for key in ("latitude", "longitude", "altitude"))
        numbers = float(content["scale_sigma"]), str(content["fitted"]), float(content["residual"])
        return MapFrame(place, *numbers, offset=_three(content["offset"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FormatError(f"cannot read {path}: {error!r}; is it what pdc-sfm wrote?") from None


def _three(values: Any) -> tuple[float, float, float]:
    first, second, third = (float(value) for value in values)
    return first, second, third


def write_frame(model: Path, frame: MapFrame | None) -> None:
    """Beside a model, also if its unit is not known: an earlier one's frame shall not be taken for its."""
    content = frame.to_dict() if frame is not None else {"unit": "unknown"}
    (model / FRAME).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
