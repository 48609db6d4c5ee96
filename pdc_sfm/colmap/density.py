"""Many points for few keypoints' time: cameras from a part of the keypoints, then points from all of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap


def thin_out(database: Path, target: Path, keypoints: int) -> bool:
    """Copy a database with the matches of each image's first keypoints only. False if there are no more than those."""
    with pycolmap.Database.open(database) as opened:
        counts = [opened.num_keypoints_for_image(image.image_id) for image in opened.read_all_images()]
    if max(counts, default=0) <= keypoints:
        return False
    shutil.copyfile(database, target)
    with pycolmap.Database.open(target) as opened, pycolmap.DatabaseTransaction(opened):
        pairs, geometries = opened.read_two_view_geometries()
        for pair_id, geometry in zip(pairs, geometries):
            inliers = np.asarray(geometry.inlier_matches)
            geometry.inlier_matches = inliers[(inliers < keypoints).all(axis=1)]
            opened.update_two_view_geometry(*pycolmap.pair_id_to_image_pair(pair_id), geometry)
    return True


def triangulate_all(
    model: pycolmap.Reconstruction, database: Path, images: Path, options: Any
) -> pycolmap.Reconstruction:
    """The points of all matches of a database, by the cameras of a model, which stay. `options` as of the mapper."""
    folder = database.with_suffix(".points")
    folder.mkdir()
    found = pycolmap.triangulate_points(model, database, images, folder, options=options)
    shutil.rmtree(folder)
    return found
