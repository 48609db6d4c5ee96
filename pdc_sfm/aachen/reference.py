"""Aachen's reference poses and intrinsics as a COLMAP model without points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.nvm import NvmModel, read_nvm
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.covisibility import most_covisible
from pdc_sfm.colmap.io.database_images import DatabaseImage, read_database_images
from pdc_sfm.colmap.io.models import SUMMARY, save_model, summarize
from pdc_sfm.colmap.io.posed_model import posed_model
from pdc_sfm.colmap.types import Camera, Reconstruction
from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_folder
from pdc_sfm.store.pair_lists import unique_pairs


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
    cameras: Mapping[str, Camera],
    ids: Mapping[str, DatabaseImage] | None = None,
    source: str = "the NVM file",
) -> Reconstruction:
    """A model of all posed images. With `ids`, those of a database, of the images that are in it."""
    poses = {name: pose for name, pose in zip(nvm.names, nvm.poses()) if ids is None or name in ids}
    for name in poses:
        if name not in cameras:
            raise FormatError(f"{name} has a pose in {source} and no intrinsics: do both files belong to one version?")
    if not poses:
        raise FormatError(f"no image of {source} is in the database: do both belong to one version?")
    return posed_model(poses, cameras, ids)
