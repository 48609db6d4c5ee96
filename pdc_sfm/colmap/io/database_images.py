"""Images and cameras of a COLMAP database: read without changing it, and written without anything else."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pycolmap

from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_path


@dataclasses.dataclass(frozen=True)
class DatabaseImage:
    """Ids of an image in a COLMAP database."""

    image_id: int
    camera_id: int


def read_database_images(path: Path) -> dict[str, DatabaseImage]:
    """Ids of the images of a COLMAP database, which is not changed (pycolmap would migrate it in place)."""
    newest = _colmap_number(pycolmap.__version__)
    try:
        with sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            rows = connection.execute("SELECT name, image_id, camera_id FROM images ORDER BY image_id").fetchall()
    except sqlite3.Error as error:
        raise FormatError(f"{path} is not a COLMAP database: {error}") from None
    if version > newest:
        raise FormatError(f"{path} was written by a COLMAP ({version}) newer than pycolmap {pycolmap.__version__}")
    return {name: DatabaseImage(image_id, camera_id) for name, image_id, camera_id in rows}


def _colmap_number(version: str) -> int:
    """Version 4.2.1 as the databases of that COLMAP number it: 4020100 (before 3.12 they had 3600 for 3.6)."""
    parts = [int("".join(c for c in part if c.isdigit()) or 0) for part in f"{version}.0.0".split(".")]
    major, minor, patch = parts[:3]
    return major * 1_000_000 + minor * 10_000 + patch * 100


def write_image_database(path: Path, cameras: Mapping[str, pycolmap.Camera]) -> None:
    """Images and cameras, one each, nothing else."""
    with atomic_path(path) as partial:
        with pycolmap.Database.open(partial) as database:
            for name, camera in sorted(cameras.items()):
                camera_id = database.write_camera(camera)
                database.write_image(pycolmap.Image(name=name, camera_id=camera_id))


def copy_unverified(source: Path, target: Path) -> tuple[list[tuple[str, str]], int]:
    """A copy of a database without what was verified. Returns its pairs of images with matches, and how many these are."""
    read_database_images(source)  # says so if it is none, or too new
    with atomic_path(target) as partial:
        shutil.copyfile(source, partial)
        with pycolmap.Database.open(partial) as database:
            database.clear_two_view_geometries()
            names = {image.image_id: image.name for image in database.read_all_images()}
            found, counts = database.read_num_matches()
        with contextlib.closing(sqlite3.connect(partial)) as connection:  # closed, its journal is in the file
            connection.execute("VACUUM")
    ids = (pycolmap.pair_id_to_image_pair(pair) for pair, count in zip(found, counts) if count)
    return sorted((names[first], names[second]) for first, second in ids), sum(counts)
