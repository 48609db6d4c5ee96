"""The challenge's own files for a dataset that came without: generated scenes in Aachen's layout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.reference import covisible_pairs, read_reference
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.files import atomic_path
from pdc_sfm.store.pair_lists import unique_pairs, write_pairs


def write_challenge_files(
    dataset: AachenDataset, query_pairs: Iterable[tuple[str, str]] | None = None, covisible: int = 20
) -> None:
    """Write database and pair list: covisible database images, and `query_pairs` (else each night query with all)."""
    if query_pairs is None:
        database = read_reference(dataset, points=False).names
        query_pairs = [(query, name) for query in read_camera_list(dataset.night_queries) for name in database]
    write_pairs(dataset.challenge_pairs, unique_pairs([*covisible_pairs(dataset, covisible), *query_pairs]))
    cameras = read_camera_list(dataset.intrinsics)
    # Version 1.0's database knows the intrinsics of queries only; the others are COLMAP's guess.
    guessed = {name: _guess(camera) if dataset.version == "1.0" else camera for name, camera in cameras.items()}
    _write_database(dataset.challenge_database, {**guessed, **read_camera_list(dataset.queries)})


def _guess(camera: pycolmap.Camera) -> pycolmap.Camera:
    guess = pycolmap.Camera(
        model="SIMPLE_RADIAL",
        width=camera.width,
        height=camera.height,
        params=np.array([1.2 * max(camera.width, camera.height), camera.width / 2, camera.height / 2, 0.0]),
    )
    guess.has_prior_focal_length = False
    return guess


def _write_database(path: Path, cameras: dict[str, pycolmap.Camera]) -> None:
    """Images and cameras, one each, nothing else."""
    with atomic_path(path) as partial:
        with pycolmap.Database.open(partial) as database:
            for name, camera in sorted(cameras.items()):
                camera_id = database.write_camera(camera)
                database.write_image(pycolmap.Image(name=name, camera_id=camera_id))
