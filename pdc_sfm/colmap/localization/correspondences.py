"""2D-3D correspondences of a query: its keypoints matched to database keypoints that show a point of the model."""

from __future__ import annotations

import dataclasses

import numpy as np

from pdc_sfm.colmap.io.point_lookup import NO_POINT, PointLookup
from pdc_sfm.errors import FormatError


@dataclasses.dataclass(frozen=True)
class Correspondences:
    """Each distinct (query keypoint, point of the model), with the database images that vouch for it."""

    keypoint: np.ndarray  # (C,) index into the query's keypoints
    point_id: np.ndarray  # (C,) id in the model
    score: np.ndarray  # (C,) confidence, summed over the database images
    votes: np.ndarray  # (V, 2) row of a correspondence and index of a database image, sorted
    num_matches: int  # before equal ones were concatenate

    def __len__(self) -> int:
        return len(self.keypoint)

    @property
    def mean_score(self) -> np.ndarray:
        """(C,) confidence, mean over the database images."""
        return self.score / np.bincount(self.votes[:, 0], minlength=len(self))

    def select(self, keep: np.ndarray) -> Correspondences:
        """The correspondences of a mask (C,)."""
        row = np.cumsum(keep) - 1
        votes = self.votes[keep[self.votes[:, 0]]]
        votes = np.stack([row[votes[:, 0]], votes[:, 1]], axis=1)
        return Correspondences(self.keypoint[keep], self.point_id[keep], self.score[keep], votes, self.num_matches)


def gather(
    found: list[tuple[int, np.ndarray, np.ndarray]], lookup: PointLookup, query: str, min_score: float
) -> Correspondences:
    """Unite matches of one query with several database images: (image id, matches (M, 2), scores (M,)) each."""
    keypoints, points, scores, voters = [], [], [], []
    for index, (image_id, matches, match_scores) in enumerate(found):
        point_ids = lookup.point_ids(image_id)
        if len(matches) and matches[:, 1].max() >= len(point_ids):
            name = lookup.model.image(image_id).name
            raise FormatError(
                f"matches of {query} {name} point to keypoint {matches[:, 1].max()} of {name}, which has "
                f"{len(point_ids)} in the model: model and features do not belong together"
            )
        shown = point_ids[matches[:, 1]]
        keep = (shown != NO_POINT) & (match_scores >= min_score)
        keypoints.append(matches[keep, 0].astype(np.int64))
        points.append(shown[keep])
        scores.append(match_scores[keep].astype(np.float64))
        voters.append(np.full(keep.sum(), index))
    return _unite(*(np.concatenate(parts) if parts else np.zeros(0) for parts in (keypoints, points, scores, voters)))


def _unite(keypoints: np.ndarray, points: np.ndarray, scores: np.ndarray, voters: np.ndarray) -> Correspondences:
    both = np.stack([keypoints, points], axis=1).astype(np.int64)
    unique, row = np.unique(both, axis=0, return_inverse=True)
    row = row.reshape(-1)
    votes = np.unique(np.stack([row, voters.astype(np.int64)], axis=1), axis=0)
    total = np.bincount(row, scores, minlength=len(unique)) if len(unique) else np.zeros(0)
    return Correspondences(unique[:, 0], unique[:, 1], total, votes, len(keypoints))
