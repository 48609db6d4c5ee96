"""Keypoints of a finished map propagated into a query by the flow, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size
from pdc_sfm.tracks.fusion import PropagatedKeypoints, add_new, confirmed, each_propagated
from pdc_sfm.tracks.propagation import propagate
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.tracks.voting import VotedKeypoints

REACH = 0.02  # of the larger side: no match farther away tells where a point goes


@dataclass(frozen=True)
class DatabaseMatches:
    """An image of the map, and the raw matches from it to a query."""

    size: Size  # of the image of the map
    keypoints: np.ndarray  # (N, 2) those of the map, which stay as they are
    matches: RawMatches  # image of the map -> query


@dataclass(frozen=True)
class QueryKeypoints:
    """Keypoints of a query, and of each image of the map its matches with them."""

    points: np.ndarray  # (K, 2) float32
    scores: np.ndarray  # (K,) float32
    # of each image: (M, 2) int32, keypoint of the query and of the image, in the query's order; (M,) float32
    matches: list[tuple[np.ndarray, np.ndarray]]

    def select(self, kept: np.ndarray) -> QueryKeypoints:
        """Those of a mask (K,), and their matches."""
        if kept.all():
            return self
        number, matches = np.cumsum(kept) - 1, []
        for pairs, scores in self.matches:
            good = kept[pairs[:, 0]]
            matches.append((np.stack((number[pairs[good, 0]], pairs[good, 1]), 1).astype(np.int32), scores[good]))
        return QueryKeypoints(self.points[kept], self.scores[kept], matches)


def query_keypoints(images: Sequence[DatabaseMatches], settings: TrackSettings) -> QueryKeypoints:
    """The query is matched by weak matches too: each keypoint stands for one point of the map, and PnP finds what is wrong."""
    starts = np.cumsum([0, *(len(image.keypoints) for image in images)])
    found = [bring(image, start + np.arange(len(image.keypoints))) for image, start in zip(images, starts)]
    query = add_new(each_propagated(found), VotedKeypoints.none(), 0, 0, settings.max_keypoints)
    matches = []
    for source in found:
        pairs, scores = confirmed(source, query, settings.max_error)
        order = np.argsort(pairs[:, 1], kind="stable")
        matches.append((pairs[order, ::-1], _as_stored(scores[order])))
    return QueryKeypoints(query.points, query.scores, matches)


def bring(image: DatabaseMatches, tracks: np.ndarray) -> PropagatedKeypoints:
    """Keypoints of an image, with their tracks (N,), in the other image of its matches."""
    order = np.argsort(tracks)  # in this order neighbors come together, and are found sooner
    found = propagate(image.matches, image.keypoints[order], REACH * max(image.size))
    return PropagatedKeypoints(tracks[order][found.index], replace(found, index=order[found.index]))


def _as_stored(scores: np.ndarray) -> np.ndarray:
    """As hloc's match files keep them, in half precision."""
    return scores.astype(np.float16).astype(np.float32)
