"""Which pairs of images may decide where cameras stand.

Things that look alike (two walls with the same windows) give a pair of images matches that agree with one geometry, and are
wrong. They are few next to those of images that really overlap. So a pair is weak if other pairs lead from one of its images
to the other, step by step, each with many times more matches: what it says of the cameras is known better without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def strong_pairs(pairs: Sequence[tuple[int, int]], matches: Sequence[int], share: float) -> np.ndarray:
    """(N,) bool: pairs with at least this share of the matches of the weakest step of the strongest way between its images.

    The strongest pair of an image always is, and what pairs connect, strong pairs connect.
    """
    return np.asarray(matches) >= share * strongest_ways(pairs, matches)


def strongest_ways(pairs: Sequence[tuple[int, int]], matches: Sequence[int]) -> np.ndarray:
    """(N,) for each pair: the matches of the weakest step on the way between its images whose weakest step has most.

    Pairs are joined in order of their matches (Kruskal). The join that first connects two images is that step.
    """
    pairs, matches = np.asarray(pairs, np.int64).reshape(-1, 2), np.asarray(matches)
    found = np.zeros(len(pairs), matches.dtype)
    group = {image: image for image in np.unique(pairs).tolist()}
    members = {image: [image] for image in group}
    waiting: dict[int, set[int]] = {image: set() for image in group}  # pairs with one image in the group
    for number, ends in enumerate(pairs.tolist()):
        for image in ends:
            waiting[image].add(number)
    for number in np.argsort(-matches, kind="stable").tolist():
        small, large = sorted((group[image] for image in pairs[number].tolist()), key=lambda g: len(members[g]))
        if small == large:
            continue
        between = waiting[small] & waiting[large]
        found[list(between)] = matches[number]
        waiting[large] |= waiting.pop(small)
        waiting[large] -= between
        for image in members[small]:
            group[image] = large
        members[large] += members.pop(small)
    return found
