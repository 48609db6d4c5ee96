"""Pair lists without retrieval: all pairs, neighbors in a sequence, nearby cameras with similar directions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from pdc_sfm.store.pair_lists import Pair, natural_order


def exhaustive_pairs(names: Sequence[str]) -> list[Pair]:
    """Every image with every other."""
    return list(itertools.combinations(names, 2))


def sequential_pairs(names: Sequence[str], overlap: int, quadratic: bool = False) -> list[Pair]:
    """Each image with the next `overlap` of its folder, by natural order of names (2.jpg before 10.jpg).

    `quadratic` adds the images 2, 4, 8, ... further on, up to 2^overlap, which bridges slow stretches at little cost.
    """
    steps = set(range(1, overlap + 1))
    if quadratic:
        steps |= {2**k for k in range(1, overlap + 1)}
    pairs = []
    for _, folder in itertools.groupby(sorted(names, key=natural_order), key=lambda name: name.rpartition("/")[0]):
        sequence = list(folder)
        for index, name in enumerate(sequence):
            pairs += [(name, sequence[index + step]) for step in sorted(steps) if index + step < len(sequence)]
    return pairs


def nearest_pose_pairs(cam_from_world: Mapping[str, np.ndarray], count: int, max_angle: float = 30.0) -> list[Pair]:
    """Each camera with the `count` nearest whose viewing directions differ by less than `max_angle` degrees.

    Poses are (3, 4) matrices. The roll about the viewing direction does not matter: such images show the same.
    """
    from scipy.spatial import cKDTree

    names = list(cam_from_world)
    if len(names) < 2:
        return []
    poses = np.stack([np.asarray(cam_from_world[name], np.float64)[:3, :4] for name in names])
    rotations, translations = poses[:, :, :3], poses[:, :, 3]
    centers = -np.einsum("nij,ni->nj", rotations, translations)
    directions = rotations[:, 2]  # the camera's z axis in the world
    tree, pairs = cKDTree(centers), []
    for index, name in enumerate(names):
        reach = min(len(names), 4 * count + 1)
        while True:  # until enough of the nearest look the same way, or there are no more
            near = np.atleast_1d(tree.query(centers[index], reach)[1])
            near = near[near != index]
            alike = near[directions[near] @ directions[index] > np.cos(np.deg2rad(max_angle))]
            if len(alike) >= count or reach == len(names):
                break
            reach = min(len(names), 4 * reach)
        pairs += [(name, names[other]) for other in alike[:count]]
    return pairs
