"""Many points for few keypoints' time: cameras from a part of the matches, then points from all of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from pdc_sfm.colmap.mapping.view_graph import supported_pairs, tracks


def subsample_matches(database: Path, target: Path, keypoints: int | None, min_support_ratio: float) -> int | None:
    """Copy a database with the matches of strong pairs (`view_graph`) and of so many keypoints an image; None: of all.

    Kept are the keypoints of the longest tracks: the order of tracks is the same in all images, so that what is kept in
    one is kept in the others. Returns how many pairs are weak, or None if all is as it was and there is no copy.
    """
    with pycolmap.Database.open(database) as opened:
        images = [image.image_id for image in opened.read_all_images()]
        counts = [opened.num_keypoints_for_image(image) for image in images]
        starts = dict(zip(images, np.cumsum([0, *counts])))
        pairs, geometries = opened.read_two_view_geometries()
    ids = [pycolmap.pair_id_to_image_pair(pair) for pair in pairs]
    inliers = [np.asarray(geometry.inlier_matches, np.int64).reshape(-1, 2) for geometry in geometries]
    nodes = [np.add(found, (starts[a], starts[b])) for (a, b), found in zip(ids, inliers)]
    strong = supported_pairs(ids, nodes, sum(counts), min_support_ratio)
    if strong.all() and (keypoints is None or max(counts, default=0) <= keypoints):
        return None
    track = tracks([some for some, is_strong in zip(nodes, strong) if is_strong], sum(counts))
    kept = _of_longest_tracks(track, counts, keypoints or max(counts))
    shutil.copyfile(database, target)
    with pycolmap.Database.open(target) as opened:
        for pair, geometry, found, node, is_strong in zip(ids, geometries, inliers, nodes, strong):
            if is_strong:
                geometry.inlier_matches = found[kept[node].all(axis=1)].astype(np.uint32)
                opened.update_two_view_geometry(*pair, geometry)
            else:
                opened.delete_two_view_geometry(*pair)
    return int((~strong).sum())


def _of_longest_tracks(track: np.ndarray, counts: list[int], keypoints: int) -> np.ndarray:
    """Mask over all keypoints, image after image, of these tracks: those of the longest, `keypoints` an image at most."""
    total = sum(counts)
    length = np.bincount(track)
    place = np.empty(len(length), np.int64)  # of each track among all, long ones first, else at random
    place[np.lexsort((np.random.default_rng(0).permutation(len(length)), -length))] = np.arange(len(length))
    image = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((place[track], image))
    rank = np.arange(total) - np.repeat(np.cumsum([0, *counts[:-1]]), counts)
    kept = np.zeros(total, bool)
    kept[order[rank < keypoints]] = True
    return kept


def triangulate_all(
    model: pycolmap.Reconstruction, database: Path, images: Path, options: Any
) -> pycolmap.Reconstruction:
    """The points of all matches of a database, by the cameras of a model, which stay. `options` as of the mapper."""
    folder = database.with_suffix(".points")
    folder.mkdir()
    found = pycolmap.triangulate_points(model, database, images, folder, options=options)
    shutil.rmtree(folder)
    return found
