"""Aachen's reference poses and intrinsics as a COLMAP model without points."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.nvm import NvmModel, read_nvm
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.covisibility import most_covisible
from pdc_sfm.colmap.io.models import SUMMARY, save_model, summarize
from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_folder
from pdc_sfm.store.pair_lists import unique_pairs


@dataclasses.dataclass(frozen=True)
class DatabaseImage:
    """Ids of an image in a COLMAP database."""

    image_id: int
    camera_id: int


def read_reference(dataset: AachenDataset, points: bool) -> NvmModel:
    """The dataset's model. Further models of the file, if any, have their own worlds and are not used."""
    models = read_nvm(dataset.nvm, points)
    if not models:
        raise FormatError(f"{dataset.nvm} holds no camera")
    return models[0]


def write_reference(dataset: AachenDataset, output: Path, database: Path | None = None) -> None:
    """Write the posed images as a model; with `database`, those that are in it, under its ids."""
    ids = None if database is None else read_database_images(database)
    nvm = read_reference(dataset, points=False)
    model = build_reference(nvm, read_camera_list(dataset.intrinsics), ids, str(dataset.nvm))
    with atomic_folder(output, SUMMARY) as folder:
        save_model(folder, model, summarize(model), {}, keep_outliers=True)


def covisible_pairs(dataset: AachenDataset, count: int) -> list[tuple[str, str]]:
    """Each database image with the `count` images that share most points of the reference with it."""
    nvm = read_reference(dataset, points=True)
    return unique_pairs(most_covisible(nvm.names, nvm.observed_image, nvm.observed_point, count))


def build_reference(
    nvm: NvmModel,
    cameras: Mapping[str, pycolmap.Camera],
    ids: Mapping[str, DatabaseImage] | None = None,
    source: str = "the NVM file",
) -> pycolmap.Reconstruction:
    """A model of all posed images. With `ids`, those of a database, of the images that are in it."""
    model = pycolmap.Reconstruction()
    for number, (name, pose) in enumerate(zip(nvm.names, nvm.poses()), start=1):
        if ids is not None and name not in ids:
            continue
        if name not in cameras:
            raise FormatError(f"{name} has a pose in {source} and no intrinsics: do both files belong to one version?")
        own = DatabaseImage(number, number) if ids is None else ids[name]
        _add_camera(model, cameras[name], own.camera_id, name)
        image = pycolmap.Image(name=name, camera_id=own.camera_id, image_id=own.image_id)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(np.ascontiguousarray(pose)))
    if model.num_images() == 0:
        raise FormatError(f"no image of {source} is in the database: do both belong to one version?")
    return model


def _add_camera(model: pycolmap.Reconstruction, camera: pycolmap.Camera, camera_id: int, name: str) -> None:
    """Images of a sequence share one camera."""
    if not model.exists_camera(camera_id):
        own = pycolmap.Camera(camera.todict())
        own.camera_id = camera_id
        model.add_camera_with_trivial_rig(own)
        return
    known = model.camera(camera_id)
    if (known.model, known.width, known.height) != (camera.model, camera.width, camera.height):
        raise FormatError(f"{name} shares camera {camera_id} in the database, but has another kind: other version?")


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
