"""Code shared by both rules for the two files, and hloc's own rule: keypoints voted for in cells.

Raw matches are read image by image and pair by pair, so that memory does not grow with the list.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import h5py
import numpy as np

from pdc_sfm.pixels import Size
from pdc_sfm.progress import progress
from pdc_sfm.store.journal import RawStore
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.store.readers import FeatureFile
from pdc_sfm.store.writers import RUN, write_keypoints, write_matches
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.tracks.spatial import RadiusIndex
from pdc_sfm.tracks.threads import Threads
from pdc_sfm.tracks.voting import VotedKeypoints, link, vote_keypoints

OPEN_IMAGES = 512  # keypoints of so many images are kept in memory while pairs are linked
IMAGES_AHEAD = 4  # so many images' matches are in memory while those before them are written
NO_MATCHES = (np.zeros((0, 2), np.int32), np.zeros(0, np.float32))


@dataclass(frozen=True)
class Job:
    """What is to be written, and where. The keypoints of fixed images stand in the feature file already."""

    raw: RawStore
    pairs: Sequence[Pair]
    done: Sequence[Pair]  # those with raw matches
    names: Sequence[str]
    fixed: frozenset[str]
    settings: TrackSettings
    feature_file: h5py.File
    match_file: h5py.File
    run: str
    threads: Threads
    uncertainty: Callable[[Size], float] | None = None  # pixels to which keypoints of an image of this size are known
    covered: Callable[[str, np.ndarray], np.ndarray] | None = None  # which points (N, 2) of an image lie under its mask

    def free_points(self, name: str, points: np.ndarray) -> np.ndarray:
        """(N,) bool: points of an image that no mask covers. Averaging may move one across a mask's border."""
        return np.ones(len(points), bool) if self.covered is None else ~self.covered(name, points)

    def is_query(self, name: str, pairs: Sequence[Pair]) -> bool:
        """Whether a free image is matched to fixed ones only, as in localization."""
        partners = {other for pair in pairs for other in pair if other != name}
        return bool(partners) and partners <= self.fixed

    def write_keypoints(self, name: str, points: np.ndarray, scores: np.ndarray, size: Size | None) -> None:
        group = write_keypoints(self.feature_file, name, points, scores, size)
        group.attrs[RUN] = self.run
        if size is not None and self.uncertainty is not None:
            group["keypoints"].attrs["uncertainty"] = self.uncertainty(size)  # hloc's name, read by its triangulation

    def free(self) -> list[str]:
        return [name for name in self.names if name not in self.fixed]

    def pairs_of(self) -> Mapping[str, list[Pair]]:
        """The matched pairs of each image, in the order of hloc's votes."""
        pairs = defaultdict(list)
        for pair in in_hloc_order(self.done):
            for name in pair:
                pairs[name].append(pair)
        return pairs

    def size_of(self, name: str, pairs: Sequence[Pair]) -> Size | None:
        """(width, height), as the pairs of an image have it."""
        return self.raw.sizes(pairs[0])[pairs[0].index(name)] if pairs else None


def write_hloc_tracks(job: Job) -> int:
    """hloc's rule. Returns the number of matches."""
    settings, pairs_of, free = job.settings, job.pairs_of(), job.free()
    exact = set()  # queries: binning would only cost their accuracy
    if settings.max_keypoints is None:
        exact = {name for name in free if job.is_query(name, pairs_of[name])}

    def keypoints_of(name: str) -> VotedKeypoints:
        sizes = (0, 0) if name in exact else (settings.max_error, settings.cell_size)
        votes = job.threads.compute(vote, job.raw.part(pairs_of[name]), name, pairs_of[name], *sizes)
        return votes.select(job.free_points(name, votes.points)).best(settings.max_keypoints)

    found = job.threads.map(keypoints_of, free, IMAGES_AHEAD)
    for name, keypoints in zip(progress(free, "keypoints", "image"), found):
        job.write_keypoints(name, keypoints.points, keypoints.scores, job.size_of(name, pairs_of[name]))
    return link_all(job, job.pairs, {name: 0.0 if name in exact else settings.max_error for name in job.names})


def vote(
    raw: RawStore, name: str, pairs: Sequence[Pair], max_error: float, cell_size: float, min_score: float = 0.0
) -> VotedKeypoints:
    """Keypoints of an image by the votes of all its observations."""
    matches = [raw.read((name, first if second == name else second)).above(min_score) for first, second in pairs]
    points = np.concatenate([np.zeros((0, 2), np.float32), *(m.keypoints0 for m in matches)])
    scores = np.concatenate([np.zeros(0, np.float32), *(m.scores for m in matches)])
    return vote_keypoints(points, scores, max_error, cell_size)[0]


def link_all(job: Job, pairs: Sequence[Pair], max_errors: Mapping[str, float]) -> int:
    """Assign the raw matches of pairs to the keypoints of their images. Returns the number of matches."""
    features = FeatureFile(job.feature_file)
    keypoints = functools.lru_cache(OPEN_IMAGES)(
        lambda name: RadiusIndex(features.keypoints(name).points, max_errors[name])
    )

    def linked(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
        return link(job.raw.read(pair), *map(keypoints, pair)) if pair in job.raw else NO_MATCHES

    total = 0
    found = job.threads.map(linked, pairs)
    for (name0, name1), (matches, scores) in zip(progress(pairs, "matches", "pair"), found):
        write_matches(job.match_file, name0, name1, matches, scores)
        total += len(matches)
    return total


def in_hloc_order(pairs: Sequence[Pair]) -> list[Pair]:
    """The order in which hloc lets pairs vote: by the fewer pairs that one of its images has, then by name."""
    degree = Counter(name for pair in pairs for name in pair)
    return sorted(pairs, key=lambda pair: (min(degree[pair[0]], degree[pair[1]]), pair))
