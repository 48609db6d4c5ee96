"""COLMAP's image registrator: poses for the images of a database that a model does not have yet, nothing else moves."""

from __future__ import annotations

from pathlib import Path

import pycolmap
from tqdm import tqdm


def register_images(
    model: pycolmap.Reconstruction, database: Path, options: pycolmap.IncrementalPipelineOptions
) -> list[str]:
    """Register all images that can be, in the order of their ids; returns their names. Intrinsics stay as they are."""
    cache_options = pycolmap.DatabaseCacheOptions(min_num_matches=options.min_num_matches)
    with pycolmap.Database.open(database) as opened:
        cache = pycolmap.DatabaseCache.create(opened, cache_options)
    mapper_options = options.get_mapper()
    mapper_options.abs_pose_refine_focal_length = False
    mapper_options.abs_pose_refine_extra_params = False
    mapper = pycolmap.IncrementalMapper(cache)
    mapper.begin_reconstruction(model)  # adds the images of the cache
    waiting = sorted(image_id for image_id, image in model.images.items() if not image.has_pose)
    registered = []
    for image_id in tqdm(waiting, "registration", unit="image"):
        if mapper.register_next_image(mapper_options, image_id):
            registered.append(model.image(image_id).name)
    mapper.end_reconstruction(False)
    del mapper  # before the cache, which it refers to
    return registered
