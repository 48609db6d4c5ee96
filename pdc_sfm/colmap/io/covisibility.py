"""Which images of a model see the same points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.point_lookup import NO_POINT, PointLookup


def covisibility_clusters(image_ids: Sequence[int], lookup: PointLookup) -> list[list[int]]:
    """Images that share points, directly or through others, largest cluster first: each may be another place."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    seen = [np.unique(lookup.point_ids(i)) for i in image_ids]
    seen = [ids[ids != NO_POINT] for ids in seen]
    points, column = np.unique(np.concatenate(seen), return_inverse=True) if seen else (np.zeros(0), np.zeros(0, int))
    row = np.repeat(np.arange(len(seen)), [len(ids) for ids in seen])
    size = len(seen) + len(points)  # a graph of images and points
    graph = coo_array((np.ones(len(row), bool), (row, len(seen) + column.reshape(-1))), (size, size))
    labels = connected_components(graph, directed=False)[1][: len(seen)]
    clusters: dict[int, list[int]] = {}
    for image_id, label in zip(image_ids, labels):
        clusters.setdefault(int(label), []).append(image_id)
    return sorted(clusters.values(), key=len, reverse=True)  # stable: the better retrieved first among equals


def pairs_from_covisibility(model: Path | str | pycolmap.Reconstruction, count: int) -> list[tuple[str, str]]:
    """Each image with the `count` images that share most points with it, as in hloc's `pairs_from_covisibility`."""
    model = model if isinstance(model, pycolmap.Reconstruction) else load_model(model)
    image_ids = sorted(model.reg_image_ids())
    row_of = {image_id: row for row, image_id in enumerate(image_ids)}
    images, points = [], []
    for number, point in enumerate(model.points3D.values()):
        elements = point.track.elements
        images += [row_of[element.image_id] for element in elements]
        points += [number] * len(elements)
    names = [model.image(i).name for i in image_ids]
    return most_covisible(names, np.array(images, int), np.array(points, int), count)


def most_covisible(names: Sequence[str], images: np.ndarray, points: np.ndarray, count: int) -> list[tuple[str, str]]:
    """Pairs from observations: `images` (O,) and `points` (O,) are the indices of each."""
    from scipy.sparse import coo_array

    shape = (len(names), int(points.max(initial=-1)) + 1)
    sees = coo_array((np.ones(len(images), np.int32), (images, points)), shape).tocsr()
    sees.data[:] = 1  # an image may show a point twice
    shared = (sees @ sees.T).tocsr()
    pairs = []
    for row, name in enumerate(names):
        part = slice(shared.indptr[row], shared.indptr[row + 1])
        others, counts = shared.indices[part], shared.data[part]
        ranked = others[np.lexsort((others, -counts))]
        pairs += [(name, names[other]) for other in ranked[ranked != row][:count]]
    return pairs
