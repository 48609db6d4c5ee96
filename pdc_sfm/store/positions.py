"""Positions of photographs: from a text file, or from GPS in EXIF."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.exif import Taken, read_taken
from pdc_sfm.paths import read_text
from pdc_sfm.processes import core_count

COLUMNS = {  # what columns are called, by their meaning
    "name": ("name", "image", "file", "filename", "label", "photo"),
    "lat": ("lat", "latitude"),
    "lon": ("lon", "lng", "long", "longitude"),
    "alt": ("alt", "altitude", "ele", "elevation", "height"),
    "x": ("x", "east", "easting"),
    "y": ("y", "north", "northing"),
    "z": ("z", "up"),
    "sigma": ("sigma", "std", "accuracy", "sigma_h"),
    "sigma_z": ("sigma_z", "sigma_v", "std_z"),
}
ORDERS = {True: ("name", "lat", "lon", "alt", "sigma", "sigma_z"), False: ("name", "x", "y", "z", "sigma", "sigma_z")}
WIDEST = 0.2  # degrees that a file without a header may span to be latitudes and longitudes: 20 km
RADIUS = 6_371_000.0  # metres, of the earth
VERTICAL = 2.0  # times the horizontal error of GPS, where nothing is said of the vertical one


@dataclasses.dataclass(frozen=True)
class Positions:
    """Places of photographs."""

    places: Mapping[str, tuple[float, float, float]]  # latitude, longitude, altitude (NaN: unknown), or x, y, z
    sigmas: Mapping[str, tuple[float, float]]  # metres, horizontal and vertical, of those that say
    geographic: bool  # degrees and metres on the earth (WGS84), not a frame of the user's
    source: str  # what they are from
    remarks: tuple[str, ...] = ()  # what one should know of how they were read

    def cartesian(self) -> dict[str, np.ndarray]:
        """Places (3,) whose distances are about right, to find neighbors by."""
        if not self.geographic:
            return {name: np.array(place) for name, place in self.places.items()}
        return {name: _on_sphere(place) for name, place in self.places.items()}

    def of(self, names: Iterable[str]) -> Positions:
        """Those of the named images; a line of a file may name an image without its folder, if it is the only one so called."""
        names = dict.fromkeys(names)
        bases: dict[str, list[str]] = {}
        for name in names:
            bases.setdefault(name.rpartition("/")[2], []).append(name)
        owner = {}
        for given in self.places:
            same = bases.get(given, [])
            if given in names:
                owner[given] = given
            elif len(same) == 1:
                owner.setdefault(same[0], given)
        places = {name: self.places[given] for name, given in owner.items()}
        sigmas = {name: self.sigmas[given] for name, given in owner.items() if given in self.sigmas}
        return dataclasses.replace(self, places=places, sigmas=sigmas)

    def some_of(self, names: Iterable[str]) -> Positions:
        """The same; an error if the file names none of the images."""
        names = list(names)
        found = self.of(names)
        if not found.places:
            wanted, there = min(names, default="a.jpg"), min(self.places, default="nothing")
            raise FormatError(
                f"{self.source} names none of the images: it has {there}, expected are names like {wanted}"
            )
        return found

    def renamed(self, links: Mapping[str, str]) -> Positions:
        """The same under other names."""
        places = {links.get(name, name): place for name, place in self.places.items()}
        return dataclasses.replace(
            self, places=places, sigmas={links.get(name, name): sigma for name, sigma in self.sigmas.items()}
        )


def read_positions(path: Path | str) -> Positions:
    """A file of lines `name lat lon alt [sigma]` or `name x y z [sigma]`, separated by blanks, tabs, commas or semicolons.

    A first line that names the columns decides what they are. Without one they are latitude, longitude and altitude if
    they can be and lie within 0.2 degrees.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read the positions {path}: {error}") from None
    lines = [(number, _words(line)) for number, line in enumerate(text.split("\n"), start=1)]
    said = [(number, words) for number, words in lines if words]
    rows = [line for line in said if not line[1][0].startswith("#")]
    first = rows[0][0] if rows else 0  # the columns are named by a comment before the first line, or by that line
    columns = next((found for number, words in said if number <= first and (found := _header(words))), None)
    if rows and _header(rows[0][1]):
        rows = rows[1:]
    if not rows:
        raise FormatError(
            f"{path} holds no positions: expected lines `name lat lon alt [sigma]` or `name x y z [sigma]`"
        )
    remarks: tuple[str, ...] = ()
    if columns is None:
        geographic = _look_geographic([_numbers(path, number, words[1:4]) for number, words in rows])
        columns = ORDERS[geographic]
        taken = "latitude, longitude, altitude" if geographic else "x, y, z"
        remarks = (f"{path} has no line of column names: its numbers are taken for {taken}",)
    if "name" not in columns or not ({"lat", "lon"} <= set(columns) or {"x", "y", "z"} <= set(columns)):
        raise FormatError(f"{path}: its columns are {' '.join(columns)}; needed are `name lat lon alt` or `name x y z`")
    places, sigmas = {}, {}
    geographic = "lat" in columns
    for number, words in rows:
        name, place, sigma = _row(path, number, words, columns, geographic)
        if name in places:
            raise FormatError(f"{path} line {number}: {name} has a position already")
        places[name] = place
        if sigma is not None:
            sigmas[name] = sigma
    return Positions(places, sigmas, geographic, str(path), remarks)


def positions_of_exif(images: Path, names: Iterable[str]) -> Positions:
    """What the photographs say themselves."""
    names = list(names)
    with ThreadPoolExecutor(core_count()) as pool:
        taken = dict(zip(names, pool.map(functools.partial(_taken, images), names)))
    return positions_of_taken(taken)


def positions_of_taken(taken: Mapping[str, Taken]) -> Positions:
    """Of what was read of photographs."""
    placed = {name: found for name, found in taken.items() if found.place is not None}
    places = {
        name: (*found.place, math.nan if found.altitude is None else found.altitude)
        for name, found in placed.items()
        if found.place is not None
    }
    sigmas = {name: (found.error, VERTICAL * found.error) for name, found in placed.items() if found.error}
    return Positions(places, sigmas, True, "EXIF")


def _taken(images: Path, name: str) -> Taken:
    return read_taken(images / name)


def _words(line: str) -> list[str]:
    line = line.strip()
    for mark in (";", ",", "\t"):
        if mark in line:
            return [word.strip().strip('"') for word in line.split(mark)]
    return line.split()


def _header(words: list[str]) -> tuple[str, ...] | None:
    """The meanings of the columns that a line names; None if it names none."""
    plain = [re.sub(r"\W", "", word.lower()) for word in words if word != "#"]
    plain[:1] = [plain[0].lstrip("#")] if plain else []
    meanings = tuple(next((key for key, said in COLUMNS.items() if word in said), word) for word in plain)
    return meanings if {"lat", "lon"} <= set(meanings) or {"x", "y"} <= set(meanings) else None


def _numbers(path: Path | str, number: int, words: Iterable[str]) -> list[float]:
    try:
        return [float(word) if word else math.nan for word in words]
    except ValueError:
        raise FormatError(
            f"{path} line {number}: expected a name and numbers, `name lat lon alt [sigma]` or `name x y z [sigma]`"
        ) from None


def _row(
    path: Path | str, number: int, words: list[str], columns: tuple[str, ...], geographic: bool
) -> tuple[str, tuple[float, float, float], tuple[float, float] | None]:
    by_column = dict(zip(columns, words))
    name = by_column.get("name", "")
    keys = ("lat", "lon", "alt") if geographic else ("x", "y", "z")
    first, second, third = _numbers(path, number, [by_column.get(key, "") for key in keys])
    sigma, sigma_z = _numbers(path, number, [by_column.get(key, "") for key in ("sigma", "sigma_z")])
    known = (first, second) if geographic else (first, second, third)
    if not name or not all(math.isfinite(value) and abs(value) < 1e9 for value in known) or math.isinf(third):
        raise FormatError(f"{path} line {number}: expected a name and numbers for {' '.join(keys)}")
    if geographic and abs(first) > 90 and abs(second) <= 90:
        raise FormatError(
            f"{path} line {number}: a latitude of {first:g} cannot be: are latitude and longitude swapped?"
        )
    if geographic and (abs(first) > 90 or abs(second) > 180):
        raise FormatError(f"{path} line {number}: latitude {first:g}, longitude {second:g} are no place on the earth")
    if math.isnan(sigma):
        return name, (first, second, third), None
    if not 0 < sigma < 1e6 or not (math.isnan(sigma_z) or 0 < sigma_z < 1e6):
        raise FormatError(f"{path} line {number}: sigma, in metres, must be positive")
    return name, (first, second, third), (sigma, sigma if math.isnan(sigma_z) else sigma_z)


def _look_geographic(numbers: list[list[float]]) -> bool:
    if any(len(row) < 2 for row in numbers):
        return False
    values = np.array([row[:2] for row in numbers])
    possible = (np.abs(values) <= (90, 180)).all() or (np.abs(values) <= (180, 90)).all()
    return bool(possible and (np.ptp(values, axis=0) <= WIDEST).all())


def _on_sphere(place: tuple[float, float, float]) -> np.ndarray:
    north, east = np.deg2rad(place[:2])
    return RADIUS * np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
