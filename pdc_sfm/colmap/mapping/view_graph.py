"""Which pairs of images may decide where cameras stand.

Things that look alike (two walls with the same windows) give a pair of images matches that agree with one geometry, and are
wrong. They are few next to those of the pairs that lead from one of its images to the other, step by step, and other points:
where a pair is right, some of its points are joined over other images too. So a pair is weak if it has few matches next to
those and hardly any of them is joined without it. What it says of the cameras is known better without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

CONFIRMED = 0.05  # of a pair's matches whose ends strong pairs join


def supported_pairs(
    pairs: Sequence[tuple[int, int]], matches: Sequence[np.ndarray], keypoints: int, share: float
) -> np.ndarray:
    """(N,) bool: pairs with at least this share of the matches of the weakest step of the strongest way between its images,
    and those that such pairs confirm. What pairs connect, strong pairs connect.

    The matches of a pair (M, 2) are numbers of keypoints, below `keypoints` in all images; `matches` may read them one by one.
    """
    counts = np.array([len(found) for found in matches])
    strong = counts >= share * bottleneck_matches(pairs, counts)
    if strong.all():
        return strong
    joined = Tracks(keypoints)
    for number in np.flatnonzero(strong).tolist():
        joined.join(matches[number])
    for number in np.flatnonzero(~strong & (counts > 0)).tolist():
        first, second = joined.of(matches[number]).T
        strong[number] = (first == second).mean() >= CONFIRMED
    return strong


class Tracks:
    """What matches join, one pair after the other: four bytes a keypoint, whatever the number of matches (union-find)."""

    def __init__(self, keypoints: int):
        self._parent = np.arange(keypoints, dtype=np.int32 if keypoints < 2**31 else np.int64)

    def join(self, matches: np.ndarray) -> None:
        """Join the ends of matches (M, 2)."""
        waiting = np.asarray(matches, np.int64).reshape(-1, 2)
        while len(waiting):
            roots = np.sort(self.of(waiting), axis=1)
            apart = roots[:, 0] != roots[:, 1]
            waiting, roots = waiting[apart], roots[apart]
            self._parent[roots[:, 1]] = roots[:, 0]  # of several with one root the last holds; the others wait

    def of(self, keypoints: np.ndarray) -> np.ndarray:
        """The number of each keypoint's track: that of its first keypoint."""
        found = self._parent[keypoints]
        while True:
            further = self._parent[found]
            if np.array_equal(further, found):
                break
            found = self._parent[further]
        self._parent[keypoints] = found  # shorter ways for those who ask next
        return found


def bottleneck_matches(pairs: ArrayLike, matches: ArrayLike) -> np.ndarray:
    """(N,) for each pair: the matches of the weakest step on the way between its images whose weakest step has most.

    Pairs are joined in order of their matches (Kruskal). The join that first connects two images is that step.
    """
    rows, counts = np.asarray(pairs, np.int64).reshape(-1, 2), np.asarray(matches)
    found = np.zeros(len(rows), counts.dtype)
    group = {image: image for image in np.unique(rows).tolist()}
    members = {image: [image] for image in group}
    waiting: dict[int, set[int]] = {image: set() for image in group}  # pairs with one image in the group
    for number, ends in enumerate(rows.tolist()):
        for image in ends:
            waiting[image].add(number)
    for number in np.argsort(-counts, kind="stable").tolist():
        small, large = sorted((group[image] for image in rows[number].tolist()), key=lambda g: len(members[g]))
        if small == large:
            continue
        between = waiting[small] & waiting[large]
        found[list(between)] = counts[number]
        waiting[large] |= waiting.pop(small)
        waiting[large] -= between
        for image in members[small]:
            group[image] = large
        members[large] += members.pop(small)
    return found
