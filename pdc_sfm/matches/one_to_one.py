"""Matches between keypoints of two images, no keypoint in more than one."""

from __future__ import annotations

import numpy as np

NONE = np.iinfo(np.int64).max  # the best of an empty group


def one_to_one(ids0: np.ndarray, ids1: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Positions of the matches (N,) that are the best of both their keypoints, earlier ones first among equals.

    They are sorted by the first keypoint; a match of a keypoint -1, which is none, is left out.
    """
    known = np.flatnonzero((ids0 >= 0) & (ids1 >= 0))
    if not len(known):
        return known
    ids0, ids1, scores = ids0[known], ids1[known], scores[known]
    index = np.arange(len(known))
    best0 = best_of_groups(ids0, scores, index, int(ids0.max()) + 1)
    best1 = best_of_groups(ids1, scores, index, int(ids1.max()) + 1)
    kept = np.flatnonzero((best0[ids0] == index) & (best1[ids1] == index))
    return known[kept[np.argsort(ids0[kept])]]


def best_of_groups(groups: np.ndarray, values: np.ndarray, ranks: np.ndarray, count: int) -> np.ndarray:
    """For each of `count` groups the rank of its highest value, the lowest among equals; NONE for an empty group."""
    top = np.full(count, -np.inf, values.dtype)
    np.maximum.at(top, groups, values)
    tied = np.flatnonzero(values == top[groups])
    best = np.full(count, NONE)
    np.minimum.at(best, groups[tied], ranks[tied])
    return best
