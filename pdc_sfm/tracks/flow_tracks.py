"""The flow rule for the two files: keypoints are propagated from image to image (`pdc_sfm.tracks.fusion`)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pdc_sfm.pixels import Size
from pdc_sfm.progress import progress
from pdc_sfm.store.journal import RawStore
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.store.readers import FeatureFile
from pdc_sfm.store.writers import write_matches
from pdc_sfm.tracks.fusion import (
    PropagatedKeypoints,
    TrackPoints,
    add_new,
    assigned,
    confirmed,
    fuse_tracks,
    image_order,
)
from pdc_sfm.tracks.hloc_tracks import IMAGES_AHEAD, OPEN_IMAGES, Job, link_all, vote
from pdc_sfm.tracks.query_keypoints import REACH, DatabaseMatches, QueryKeypoints, bring, query_keypoints
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.tracks.spill_cache import SpillCache
from pdc_sfm.tracks.threads import Awaited
from pdc_sfm.tracks.voting import VotedKeypoints


def write_flow_tracks(job: Job) -> int:
    """Write keypoints and matches. Returns the number of matches."""
    carrier, total = _Carrier(job), 0
    queries = [name for name, pairs in carrier.pairs_of.items() if name not in job.fixed and job.is_query(name, pairs)]
    asked = set(queries)
    order = [name for name in image_order(job.done, job.fixed) if name not in asked]
    seen = job.threads.map(carrier.look_at, order, IMAGES_AHEAD)
    for i, (name, view) in enumerate(zip(progress(order, "tracks", "image"), seen)):
        total += carrier.add(name, view, order[i + 1 : i + 1 + IMAGES_AHEAD])
    placed = job.threads.map(carrier.place_query, queries, IMAGES_AHEAD)
    for name, keypoints in zip(progress(queries, "queries", "image"), placed):
        total += carrier.add_query(name, keypoints)
    for name in job.free():
        if name not in carrier.pairs_of:  # an image none of whose pairs could be matched
            job.write_keypoints(name, np.zeros((0, 2)), np.zeros(0), None)
    rest = [pair for pair in job.pairs if pair not in carrier.written]  # of two fixed images, or without raw matches
    return total + link_all(job, rest, dict.fromkeys(job.names, job.settings.max_error))


def spacing(points: np.ndarray, size: Size, settings: TrackSettings) -> float:
    """How near keypoints may be, for `max_keypoints` of them to cover all places (N, 2) that could have one.

    Keypoints at least d apart were counted as 0.4 area / d^2 on real scenes. Cutting off the weakest instead would leave
    whole parts of an image empty, always those that are seen last.
    """
    if settings.max_keypoints is None or not len(points):
        return settings.cell_size / 2
    square = REACH * max(size)
    columns, rows = (axis - axis.min() for axis in np.floor(points.T / square).astype(np.int64))
    area = np.count_nonzero(np.bincount(rows * (columns.max() + 1) + columns)) * square**2
    return max(settings.cell_size / 2, math.sqrt(0.4 * area / settings.max_keypoints))


@dataclass(frozen=True)
class _VotedView:
    """What the raw matches alone say of an image."""

    size: Size
    votes: VotedKeypoints  # where keypoints may begin
    distance: float  # no two keypoints nearer than this


class _Carrier:
    """The images done so far, as long as images to come are paired with them."""

    def __init__(self, job: Job):
        self.job = job
        self.pairs_of = job.pairs_of()
        self.written: set[Pair] = set()
        self.tracks = 0  # begun so far
        self.known = SpillCache(Path(job.match_file.filename).parent, OPEN_IMAGES)
        self.coming: dict[tuple[str, str], Awaited[PropagatedKeypoints]] = {}  # (from, into): begun early
        self.waiting = {name: len(pairs) for name, pairs in self.pairs_of.items()}
        self.fixed_points = functools.lru_cache(OPEN_IMAGES)(self._read_fixed)
        self.fixed_tracks: dict[str, int] = {}

    def look_at(self, name: str) -> _VotedView:
        """Let an image's matches vote: needs nothing of the images before."""
        job, settings, pairs = self.job, self.job.settings, self.pairs_of[name]
        size = job.size_of(name, pairs)
        assert size is not None  # an image in the order has a pair
        rule = settings.max_error, settings.cell_size, settings.min_score
        votes = job.threads.compute(vote, job.raw.part(pairs), name, pairs, *rule)
        return _VotedView(size, votes, spacing(votes.points, size, settings))

    def add(self, name: str, view: _VotedView, following: Sequence[str]) -> int:
        """Do one image: its keypoints, and its matches with all images before it. Returns the number of matches.

        What it gives to the `following` images begins early, as soon as they are following.
        """
        job = self.job
        known = [pair for pair in self.pairs_of[name] if self._is_known(_other(pair, name))]
        begun = [self._propagated(_other(pair, name), name) for pair in known]
        propagated = [one.result() for one in begun]
        image = self._keypoints(name, view, propagated)
        self.known[name] = image
        for later in following:
            for other in (_other(pair, later) for pair in self.pairs_of[later]):
                if other in self.known and (other, later) not in self.coming:
                    self.coming[other, later] = self._begin(other, later, self.known[other])
        job.write_keypoints(name, image.points, image.scores, view.size)
        total = 0
        for pair, source in zip(known, propagated):
            rule = assigned if _other(pair, name) in job.fixed else confirmed
            matches, scores = rule(source, image, job.settings.max_error)
            write_matches(job.match_file, *pair, matches if pair[1] == name else matches[:, ::-1], scores)
            self.written.add(pair)
            total += len(matches)
            for end in pair:
                self._forget(end)
        return total

    def place_query(self, name: str) -> QueryKeypoints:
        """The keypoints of an image that is matched to fixed ones only: needs nothing of other images."""
        job, pairs = self.job, self.pairs_of[name]
        points = [self.fixed_points(_other(pair, name)) for pair in pairs]
        return job.threads.compute(_place_query, job.raw.part(pairs), name, pairs, points, job.settings)

    def add_query(self, name: str, keypoints: QueryKeypoints) -> int:
        """Write what was found of it. Returns the number of matches."""
        pairs = self.pairs_of[name]
        keypoints = keypoints.select(self.job.free_points(name, keypoints.points))
        self.job.write_keypoints(name, keypoints.points, keypoints.scores, self.job.size_of(name, pairs))
        for pair, (matches, scores) in zip(pairs, keypoints.matches):
            write_matches(self.job.match_file, *pair, matches if pair[0] == name else matches[:, ::-1], scores)
            self.written.add(pair)
        return sum(len(matches) for matches, _ in keypoints.matches)

    def _keypoints(self, name: str, view: _VotedView, propagated: list[PropagatedKeypoints]) -> TrackPoints:
        count = self.job.settings.max_keypoints
        image = add_new(fuse_tracks(propagated, view.distance), view.votes, self.tracks, view.distance, count)
        self.tracks += len(view.votes)
        return image.select(self.job.free_points(name, image.points))

    def _propagated(self, other: str, name: str) -> Awaited[PropagatedKeypoints]:
        """The keypoints of an image before in this one: begun early, unless they are fixed, which are numbered now."""
        found = self.coming.pop((other, name), None)
        return found or self._begin(other, name, self.known[other] if other in self.known else self._fixed(other))

    def _begin(self, other: str, name: str, image: TrackPoints) -> Awaited[PropagatedKeypoints]:
        job, pair = self.job, (other, name)
        return job.threads.begin(_bring, job.raw.part([pair]), pair, job.settings.min_score, image.points, image.tracks)

    def _is_known(self, name: str) -> bool:
        return name in self.known or name in self.job.fixed

    def _forget(self, name: str) -> None:
        self.waiting[name] -= 1
        if not self.waiting[name]:
            self.known.drop(name)

    def _fixed(self, name: str) -> TrackPoints:
        """Keypoints that stay as they are, numbered when they are first used."""
        points = self.fixed_points(name)
        if name not in self.fixed_tracks:
            self.fixed_tracks[name] = self.tracks
            self.tracks += len(points)
        tracks = self.fixed_tracks[name] + np.arange(len(points))
        return TrackPoints(points, np.ones(len(points), np.float32), tracks)

    def _read_fixed(self, name: str) -> np.ndarray:
        return FeatureFile(self.job.feature_file).keypoints(name).points


def _bring(raw: RawStore, pair: Pair, min_score: float, points: np.ndarray, tracks: np.ndarray) -> PropagatedKeypoints:
    """Keypoints of the first image of a pair, with their tracks, in its second."""
    return bring(DatabaseMatches(raw.sizes(pair)[0], points, raw.read(pair).above(min_score)), tracks)


def _place_query(
    raw: RawStore, name: str, pairs: Sequence[Pair], points: Sequence[np.ndarray], settings: TrackSettings
) -> QueryKeypoints:
    """The keypoints of a query, from its raw matches with images of these keypoints."""
    ordered = [(_other(pair, name), name) for pair in pairs]
    images = [DatabaseMatches(raw.sizes(pair)[0], own, raw.read(pair)) for pair, own in zip(ordered, points)]
    return query_keypoints(images, settings)


def _other(pair: Pair, name: str) -> str:
    return pair[1] if pair[0] == name else pair[0]
