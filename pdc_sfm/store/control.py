"""Ground control points, the pixels where photographs show them, and known distances."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

from pdc_sfm.errors import FormatError
from pdc_sfm.paths import read_text

SIGMA = 0.02  # metres, of a point or a distance that does not say: a tape, or a good receiver
FORMS = {
    "frame": "frame geographic or frame local",
    "point": "point NAME LAT LON ALT [SIGMA], or point NAME X Y Z [SIGMA]",
    "seen": "seen NAME IMAGE X Y",
    "distance": "distance NAME NAME METRES [SIGMA]",
}


@dataclasses.dataclass(frozen=True)
class Control:
    """What a file of control says. Names of points and of images are told apart by `seen`."""

    points: Mapping[str, tuple[float, float, float]]  # latitude, longitude, altitude, or x, y, z
    sigmas: Mapping[str, float]  # metres
    seen: Mapping[str, Mapping[str, tuple[float, float]]]  # point -> image -> pixel indices x, y
    distances: Mapping[tuple[str, str], tuple[float, float]]  # of two points, or images: metres, sigma
    geographic: bool
    source: str

    def renamed(self, links: Mapping[str, str]) -> Control:
        """The same with other names of images."""
        seen = {
            name: {links.get(image, image): at for image, at in images.items()} for name, images in self.seen.items()
        }
        distances = {
            (links.get(first, first), links.get(second, second)): said
            for (first, second), said in self.distances.items()
        }
        return dataclasses.replace(self, seen=seen, distances=distances)


def read_control(path: Path | str) -> Control:
    """Lines `frame`, `point`, `seen` and `distance`, separated by blanks (`FORMS`); # begins a comment."""
    try:
        lines = read_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read the control points {path}: {error}") from None
    points: dict[str, tuple[float, float, float]] = {}
    sigmas: dict[str, float] = {}
    seen: dict[str, dict[str, tuple[float, float]]] = {}
    distances: dict[tuple[str, str], tuple[float, float]] = {}
    frame = "local"
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            kind, rest = words[0], words[1:]
            if kind == "frame" and rest in (["geographic"], ["local"]):
                frame = rest[0]
            elif kind == "point" and len(rest) in (4, 5) and rest[0] not in points:
                first, second, third, *more = (_finite(word) for word in rest[1:])
                points[rest[0]], sigmas[rest[0]] = (first, second, third), _positive(more[0] if more else SIGMA)
            elif kind == "seen" and len(rest) == 4 and rest[1] not in seen.get(rest[0], {}):
                seen.setdefault(rest[0], {})[rest[1]] = _finite(rest[2]), _finite(rest[3])
            elif kind == "distance" and len(rest) in (3, 4) and rest[0] != rest[1]:
                metres, *more = (_positive(_finite(word)) for word in rest[2:])
                distances[rest[0], rest[1]] = metres, more[0] if more else SIGMA
            else:
                raise ValueError
        except ValueError:
            form = FORMS.get(words[0], "; ".join(FORMS.values()))
            raise FormatError(f"{path} line {number}: expected `{form}`, each name once") from None
    control = Control(points, sigmas, seen, distances, frame == "geographic", str(path))
    _check(control, path)
    return control


def _check(control: Control, path: Path | str) -> None:
    if not control.points and not control.distances:
        raise FormatError(f"{path} holds no `point` and no `distance`")
    for name in control.points:
        if len(control.seen.get(name, {})) < 2:
            raise FormatError(f"{path}: the point {name} needs two lines `seen` at least, of different images")
    if control.geographic and any(abs(lat) > 90 or abs(lon) > 180 for lat, lon, _ in control.points.values()):
        raise FormatError(f"{path}: a latitude lies within 90, a longitude within 180 degrees: are they swapped?")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value) or abs(value) > 1e9:
        raise ValueError
    return value


def _positive(value: float) -> float:
    if value <= 0:
        raise ValueError
    return value
