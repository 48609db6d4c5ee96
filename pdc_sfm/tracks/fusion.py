"""Tracks by the flow: keypoints are propagated from image to image, while hloc's rule rounds them to cells.

Images are done one after the other. Every keypoint of the images before is propagated into the new one by the dense
matches of their pair, to a fraction of a pixel; what comes from several images on the same track is averaged robustly.
Only where none is propagated do new keypoints begin. So a track's observations agree with each other by construction, and
a pair's matches are the tracks that its own flow confirms.
"""

from __future__ import annotations

import functools
import heapq
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pdc_sfm.tracks.propagation import Propagated
from pdc_sfm.tracks.spatial import RadiusIndex, far_from, radius_nms
from pdc_sfm.tracks.voting import VotedKeypoints, strongest_first

ROUNDS = 5  # of reweighting
SAME_POINT = 0.25  # of the error that a match may have: half a pixel, within which tracks are placed
LONGEST_TABLE = 32  # entries for each number that is looked up


@dataclass(frozen=True)
class TrackPoints:
    """Keypoints of an image and the track of each."""

    points: np.ndarray  # (K, 2) float32
    scores: np.ndarray  # (K,) float32
    tracks: np.ndarray  # (K,) int64, all different

    def __len__(self) -> int:
        return len(self.tracks)

    def select(self, kept: np.ndarray) -> TrackPoints:
        """Those of a mask (K,)."""
        return self if kept.all() else TrackPoints(self.points[kept], self.scores[kept], self.tracks[kept])

    @functools.cached_property
    def by_track(self) -> tuple[np.ndarray, np.ndarray]:
        """The tracks (K,) in their order, and the keypoint of each: the same for all pairs of the image."""
        order = np.argsort(self.tracks)
        return self.tracks[order], order


@dataclass(frozen=True)
class PropagatedKeypoints:
    """Keypoints of an earlier image as they are propagated into the new one."""

    tracks: np.ndarray  # (M,) int64
    propagated: Propagated


def fuse_tracks(propagated: Sequence[PropagatedKeypoints], distance: float) -> TrackPoints:
    """One place for each track that is propagated; of tracks nearer to each other than `distance` the best supported."""
    if not sum(len(source.tracks) for source in propagated):
        return TrackPoints(np.zeros((0, 2), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64))
    tracks, group = _numbered(np.concatenate([source.tracks for source in propagated]))
    x, y = np.concatenate([source.propagated.points for source in propagated]).T.copy()
    prior = np.concatenate([source.propagated.weights for source in propagated])
    scales = [max(1.0, source.propagated.tolerance / 2) ** -2 for source in propagated]
    scale = np.repeat(scales, [len(source.tracks) for source in propagated])
    weight = prior
    for _ in range(ROUNDS):
        support = np.bincount(group, weight, len(tracks))
        there = np.maximum(support, 1e-12)
        mean_x, mean_y = (np.bincount(group, weight * axis, len(tracks)) / there for axis in (x, y))
        error = (x - mean_x.take(group)) ** 2 + (y - mean_y.take(group)) ** 2
        weight = prior / (1 + error * scale) ** 2  # a pixel off counts a quarter
    places = np.stack((mean_x, mean_y), 1)
    kept = radius_nms(places, support, distance)
    return TrackPoints(places[kept].astype(np.float32), support[kept].astype(np.float32), tracks[kept])


def _numbered(tracks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of some tracks (N,), in their order, and for each of all its place among them.

    By a table, several times as fast as sorting, unless they lie too far apart.
    """
    first, span = tracks.min(), int(np.ptp(tracks)) + 1
    if span > LONGEST_TABLE * len(tracks):
        return np.unique(tracks, return_inverse=True)
    place = np.zeros(span, np.int32)
    place[tracks - first] = 1
    different = np.flatnonzero(place)
    place[different] = np.arange(len(different))
    return different + first, place[tracks - first]


def each_propagated(propagated: Sequence[PropagatedKeypoints]) -> TrackPoints:
    """Every propagated keypoint by itself: for localization, where each stands for another point of the map."""
    if not propagated:
        return fuse_tracks((), 0)
    return TrackPoints(
        np.concatenate([source.propagated.points for source in propagated]).astype(np.float32),
        np.concatenate([source.propagated.weights for source in propagated]).astype(np.float32),
        np.concatenate([source.tracks for source in propagated]),
    )


def add_new(
    placed: TrackPoints, new: VotedKeypoints, first_track: int, distance: float, count: int | None
) -> TrackPoints:
    """Begin tracks at keypoints `distance` away from the placed ones and each other; `count` in all, placed ones first."""
    free = far_from(placed.points, new.points, distance)
    free = free[radius_nms(new.points[free], new.scores[free], distance)]
    points, scores = new.points[free], new.scores[free]
    best0, best1 = (strongest_first(values) for values in (placed.scores, scores))
    best0 = best0[:count]
    best1 = best1[: None if count is None else count - len(best0)]
    return TrackPoints(
        np.concatenate((placed.points[best0], points[best1])),
        np.concatenate((placed.scores[best0], scores[best1])),
        np.concatenate((placed.tracks[best0], first_track + np.arange(len(best1)))),
    )


def confirmed(source: PropagatedKeypoints, image: TrackPoints, max_error: float) -> tuple[np.ndarray, np.ndarray]:
    """Matches of a pair: keypoints that its flow propagates to within max_error of their track's place.

    Where matches are sparse, as in large photographs seen small by the network, half their distance is allowed.
    Returns (M, 2) int32, index in the earlier and in the new image, and scores (M,) float32.
    """
    if not len(image) or not len(source.tracks):
        return np.zeros((0, 2), np.int32), np.zeros(0, np.float32)
    tracks, keypoints = image.by_track
    found = np.minimum(np.searchsorted(tracks, source.tracks), len(image) - 1)
    here = np.flatnonzero(tracks[found] == source.tracks)
    found = keypoints[found[here]]
    x, y = (image.points.take(found, 0) - source.propagated.points.take(here, 0)).T
    good = np.flatnonzero(x * x + y * y <= max(max_error, source.propagated.tolerance) ** 2)
    matches = np.stack((source.propagated.index[here[good]], found[good]), 1).astype(np.int32)
    return matches, source.propagated.scores[here[good]]


def assigned(source: PropagatedKeypoints, image: TrackPoints, max_error: float) -> tuple[np.ndarray, np.ndarray]:
    """As `confirmed`, of an earlier image whose keypoints are fixed: each is a track by itself, though other fixed images show
    the same point. Those that are propagated to one place share the keypoint there, of each image the nearest.
    """
    distance = SAME_POINT * max(max_error, source.propagated.tolerance)
    found = RadiusIndex(image.points, distance).of(source.propagated.points)
    here = np.flatnonzero(found >= 0)
    away = np.linalg.norm(image.points[found[here]] - source.propagated.points[here], axis=1)
    here = here[np.argsort(away, kind="stable")]
    here = here[np.unique(found[here], return_index=True)[1]]
    return np.stack((source.propagated.index[here], found[here]), 1).astype(np.int32), source.propagated.scores[here]


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
