"""The challenge's own files for a dataset that came without: generated scenes in Aachen's layout."""

from __future__ import annotations

from collections.abc import Iterable

from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.reference import covisible_pairs, read_reference
from pdc_sfm.colmap.io.cameras import guess_camera, read_camera_list
from pdc_sfm.colmap.io.database_images import write_image_database
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
    if dataset.version == "1.0":
        cameras = {name: guess_camera(camera.width, camera.height) for name, camera in cameras.items()}
    write_image_database(dataset.challenge_database, {**cameras, **read_camera_list(dataset.queries)})
