"""The flow's rule of filling the two files: keypoints are carried from image to image (`pdc_sfm.matches.carry`)."""

from __future__ import annotations

import functools
import math

import numpy as np

from pdc_sfm.matches.carry import Arrival, TrackPoints, add_new, confirmed, each_arrival, image_order, place_tracks
from pdc_sfm.matches.tracks import Keypoints, TrackSettings
from pdc_sfm.matches.transfer import transfer
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size
from pdc_sfm.store.readers import FeatureFile
from pdc_sfm.store.rules import OPEN_IMAGES, Job, Pair, link_all, progress, vote
from pdc_sfm.store.writers import write_matches

REACH = 0.02  # of the larger side: no match farther away tells where a point goes


def write_by_flow(job: Job) -> int:
    """Write keypoints and matches. Returns the number of matches."""
    carrier, total = _Carrier(job), 0
    for name in progress(image_order(job.done, job.fixed), "tracks", "image", job.show):
        total += carrier.add(name)
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
    if settings.max_keypoints is None:
        return settings.cell_size / 2
    square = REACH * max(size)
    columns, rows = np.floor(points / square).astype(np.int64).T
    area = len(np.unique((rows << 32) + columns)) * square**2
    return max(settings.cell_size / 2, math.sqrt(0.4 * area / settings.max_keypoints))


class _Carrier:
    """The images done so far, as long as images to come are paired with them."""

    def __init__(self, job: Job):
        self.job = job
        self.pairs_of = job.pairs_of()
        self.written: set[Pair] = set()
        self.tracks = 0  # begun so far
        self.known: dict[str, TrackPoints] = {}
        self.waiting = {name: len(pairs) for name, pairs in self.pairs_of.items()}
        self.fixed = functools.lru_cache(OPEN_IMAGES)(self._read_fixed)
        self.fixed_tracks: dict[str, int] = {}

    def add(self, name: str) -> int:
        """Do one image: its keypoints, and its matches with all images before it. Returns the number of matches."""
        job, pairs = self.job, self.pairs_of[name]
        matches, size = job.read_image(name, pairs)
        if not job.is_query(name, pairs):
            matches = {other: some.select(some.scores >= job.settings.min_score) for other, some in matches.items()}
        known = [pair for pair in pairs if self._is_known(_other(pair, name))]
        arrivals = {pair: self._arrive(matches, name, _other(pair, name)) for pair in known}
        image = self._keypoints(name, size, matches, list(arrivals.values()))
        job.write_keypoints(name, image.points, image.scores, size)
        self.known[name] = image
        total = 0
        for pair, arrival in arrivals.items():
            found, scores = confirmed(arrival, image, job.settings.max_error)
            write_matches(job.match_file, *pair, found if pair[1] == name else found[:, ::-1], scores)
            self.written.add(pair)
            total += len(found)
            for end in pair:
                self._forget(end)
        return total

    def _keypoints(self, name: str, size: Size, matches: dict[str, RawMatches], arrivals: list[Arrival]) -> TrackPoints:
        settings = self.job.settings
        if self.job.is_query(name, self.pairs_of[name]):
            return add_new(each_arrival(arrivals), Keypoints.none(), 0, 0, settings.max_keypoints)
        votes = vote(matches.values(), settings.max_error, settings.cell_size)
        distance = spacing(votes.points, size, settings)
        image = add_new(place_tracks(arrivals, distance), votes, self.tracks, distance, settings.max_keypoints)
        self.tracks += len(votes)
        return image

    def _arrive(self, matches: dict[str, RawMatches], name: str, other: str) -> Arrival:
        """The keypoints of an image before, carried into this one by their pair's matches."""
        image = self.known[other] if other in self.known else self.fixed(other)
        reach = REACH * max(self.job.raw.sizes((other, name))[0])
        carried = transfer(matches[other].swapped(), image.points, reach)
        return Arrival(image.tracks[carried.index], carried)

    def _is_known(self, name: str) -> bool:
        return name in self.known or name in self.job.fixed

    def _forget(self, name: str) -> None:
        self.waiting[name] -= 1
        if not self.waiting[name]:
            self.known.pop(name, None)

    def _read_fixed(self, name: str) -> TrackPoints:
        points = FeatureFile(self.job.feature_file).keypoints(name).points
        if name not in self.fixed_tracks:
            self.fixed_tracks[name] = self.tracks
            self.tracks += len(points)
        tracks = self.fixed_tracks[name] + np.arange(len(points))
        return TrackPoints(points, np.ones(len(points), np.float32), tracks)


def _other(pair: Pair, name: str) -> str:
    return pair[1] if pair[0] == name else pair[0]
