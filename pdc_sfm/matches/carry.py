"""Tracks by the flow: keypoints are carried from image to image, where hloc's rule would round them to cells.

Images are done one after the other. Every keypoint of the images before is carried into the new one by the dense
matches of their pair, to a fraction of a pixel; what comes from several images on the same track is averaged robustly.
Only where nothing arrives do new keypoints begin. So a track's observations agree with each other by construction, and
a pair's matches are the tracks that its own flow confirms.
"""

from __future__ import annotations

import functools
import heapq
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pdc_sfm.matches.tracks import Keypoints
from pdc_sfm.matches.transfer import Transferred

ROUNDS = 5  # of reweighting
CROWD = 64  # with more points than this so near to each other, their pairs are not listed


@dataclass(frozen=True)
class TrackPoints:
    """Keypoints of an image and the track of each."""

    points: np.ndarray  # (K, 2) float32
    scores: np.ndarray  # (K,) float32
    tracks: np.ndarray  # (K,) int64, all different

    def __len__(self) -> int:
        return len(self.tracks)

    @functools.cached_property
    def by_track(self) -> np.ndarray:
        """The keypoints (K,) in the order of their tracks: the same for all pairs of the image."""
        return np.argsort(self.tracks)


@dataclass(frozen=True)
class Arrival:
    """Keypoints of an earlier image as they arrive in the new one."""

    tracks: np.ndarray  # (M,) int64
    carried: Transferred


def place_tracks(arrivals: Sequence[Arrival], distance: float) -> TrackPoints:
    """One place for each track that arrives; of tracks nearer to each other than `distance` the best supported."""
    if not sum(len(arrival.tracks) for arrival in arrivals):
        return TrackPoints(np.zeros((0, 2), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64))
    tracks, group = np.unique(np.concatenate([arrival.tracks for arrival in arrivals]), return_inverse=True)
    x, y = np.concatenate([arrival.carried.points for arrival in arrivals]).T.copy()
    prior = np.concatenate([arrival.carried.weights for arrival in arrivals])
    scale = np.repeat([max(1.0, a.carried.tolerance / 2) for a in arrivals], [len(a.tracks) for a in arrivals])
    weight = prior
    for _ in range(ROUNDS):
        support = np.bincount(group, weight, len(tracks))
        there = np.maximum(support, 1e-12)
        mean_x, mean_y = (np.bincount(group, weight * axis, len(tracks)) / there for axis in (x, y))
        error = np.sqrt((x - mean_x[group]) ** 2 + (y - mean_y[group]) ** 2)
        weight = prior / (1 + (error / scale) ** 2) ** 2  # a pixel off counts a quarter
    places = np.stack((mean_x, mean_y), 1)
    kept = strongest_apart(places, support, distance)
    return TrackPoints(places[kept].astype(np.float32), support[kept].astype(np.float32), tracks[kept])


def each_arrival(arrivals: Sequence[Arrival]) -> TrackPoints:
    """Every arrival as its own keypoint: for localisation, where each stands for another point of the map."""
    if not arrivals:
        return place_tracks((), 0)
    return TrackPoints(
        np.concatenate([arrival.carried.points for arrival in arrivals]).astype(np.float32),
        np.concatenate([arrival.carried.weights for arrival in arrivals]).astype(np.float32),
        np.concatenate([arrival.tracks for arrival in arrivals]),
    )


def add_new(placed: TrackPoints, new: Keypoints, first_track: int, distance: float, count: int | None) -> TrackPoints:
    """Begin tracks at keypoints `distance` away from the placed ones and each other; `count` in all, placed ones first."""
    from scipy.spatial import cKDTree

    points, scores = new.points, new.scores
    if len(placed) and len(new):
        away, _ = cKDTree(placed.points).query(points, distance_upper_bound=distance)
        points, scores = points[np.isinf(away)], scores[np.isinf(away)]
    apart = strongest_apart(points, scores, distance)
    points, scores = points[apart], scores[apart]
    best0, best1 = (np.argsort(-values, kind="stable") for values in (placed.scores, scores))
    best0 = best0[:count]
    best1 = best1[: None if count is None else count - len(best0)]
    return TrackPoints(
        np.concatenate((placed.points[best0], points[best1])),
        np.concatenate((placed.scores[best0], scores[best1])),
        np.concatenate((placed.tracks[best0], first_track + np.arange(len(best1)))),
    )


def confirmed(arrival: Arrival, image: TrackPoints, max_error: float) -> tuple[np.ndarray, np.ndarray]:
    """Matches of a pair: keypoints that its flow carries to within max_error of their track's place.

    Where matches are sparse, as in large photographs seen small by the network, half their distance is allowed.
    Returns (M, 2) int32, index in the earlier and in the new image, and scores (M,) float32.
    """
    if not len(image) or not len(arrival.tracks):
        return np.zeros((0, 2), np.int32), np.zeros(0, np.float32)
    found = np.searchsorted(image.tracks, arrival.tracks, sorter=image.by_track)
    found = image.by_track[np.minimum(found, len(image) - 1)]
    error = np.linalg.norm(image.points[found] - arrival.carried.points, axis=1)
    good = (image.tracks[found] == arrival.tracks) & (error <= max(max_error, arrival.carried.tolerance))
    matches = np.stack((arrival.carried.index[good], found[good]), 1).astype(np.int32)
    return matches, arrival.carried.scores[good]


def strongest_apart(points: np.ndarray, weights: np.ndarray, distance: float) -> np.ndarray:
    """Indices of points that are the strongest within `distance`, after those already beaten are gone."""
    from scipy.spatial import cKDTree

    if not len(points):
        return np.zeros(0, np.int64)
    rank = np.empty(len(points), np.int64)
    rank[np.argsort(-weights, kind="stable")] = np.arange(len(points))[::-1]
    square = _squares(points, distance)
    if square is not None and np.bincount(square).max() > CROWD:
        return _strongest_of_crowds(points, rank, square, distance)
    near = cKDTree(points, balanced_tree=False, compact_nodes=False).query_pairs(distance, output_type="ndarray")
    kept, open_ = np.zeros(len(points), bool), np.ones(len(points), bool)
    while open_.any():
        near = near[open_[near].all(1)]
        rival = np.full(len(points), -1)
        np.maximum.at(rival, near[:, 0], rank[near[:, 1]])
        np.maximum.at(rival, near[:, 1], rank[near[:, 0]])
        winners = open_ & (rank > rival)
        kept |= winners
        open_ &= ~winners
        beaten = near[winners[near].any(1)]
        open_[beaten.reshape(-1)] = False
    return np.flatnonzero(kept)


def _squares(points: np.ndarray, distance: float) -> np.ndarray | None:
    """The number of each point's square (N,), so small that all points of a square are within `distance`."""
    if distance <= 0:
        return None
    columns, rows = np.floor(points / (0.7 * distance)).astype(np.int64).T
    return np.unique((rows << 32) + columns, return_inverse=True)[1].reshape(-1)


def _strongest_of_crowds(points: np.ndarray, rank: np.ndarray, square: np.ndarray, distance: float) -> np.ndarray:
    """The same without listing all pairs, whose number is the square of a crowd's: where a flow collapses, thousands.

    A winner is the strongest of its own square, so only these are compared with all others.
    """
    from scipy.spatial import cKDTree

    left, kept = np.argsort(-rank), []  # strongest first
    while len(left):
        leaders = left[np.unique(square[left], return_index=True)[1]]
        near = cKDTree(points[leaders]).sparse_distance_matrix(cKDTree(points[left]), distance, output_type="ndarray")
        rival = rank[leaders].copy()
        np.maximum.at(rival, near["i"], rank[left[near["j"]]])
        winners = rival == rank[leaders]
        kept.append(leaders[winners])
        gone = np.zeros(len(points), bool)
        gone[leaders[winners]] = True
        gone[left[near["j"][winners[near["i"]]]]] = True
        left = left[~gone[left]]
    return np.sort(np.concatenate(kept))


def image_order(pairs: Sequence[tuple[str, str]], done: Collection[str] = ()) -> list[str]:
    """The order in which images are done: always the one with most pairs to those before it, then with most pairs."""
    partners = defaultdict(set)
    for first, second in pairs:
        partners[first].add(second)
        partners[second].add(first)
    done = set(done)
    before = {name: len(partners[name] & done) for name in partners if name not in done}
    heap = [(-count, -len(partners[name]), name) for name, count in before.items()]
    heapq.heapify(heap)
    order = []
    while heap:
        count, _, name = heapq.heappop(heap)
        if name not in before or -count != before[name]:
            continue  # outdated
        order.append(name)
        del before[name]
        for other in partners[name]:
            if other in before:
                before[other] += 1
                heapq.heappush(heap, (-before[other], -len(partners[other]), other))
    return order
