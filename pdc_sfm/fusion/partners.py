"""With which other images the depth of an image is found: they see the same points from elsewhere, but not from too far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pdc_sfm.colmap.io.posed_views import PosedView
from pdc_sfm.pixels import inside

# Degrees between the rays to a point. Below the first, the error of its depth grows as the angle shrinks; beyond the
# second, patches look less and less alike: half as much, about, after another `FADING`.
WIDE_ENOUGH, TOO_WIDE, FADING = 8.0, 12.0, 15.0
LOOKED_AT = 48  # other images: those that share most points, then the nearest
LEAST_GAIN = 0.002  # of the points: an image that adds less is no partner
UNMATCHED = (
    0.3  # worth of an image for a point that lies in it and was not matched there: it may be hidden, or hard to match
)


def choose_partners(views: Sequence[PosedView], count: int) -> list[list[int]]:
    """Of each view at most `count` others, the best first: each adds what the ones before it do not see well."""
    shared, centers = _shared_counts(views), np.array([view.center for view in views])
    found = []
    for number, view in enumerate(views):
        away = np.linalg.norm(centers - view.center, axis=1)
        order = np.lexsort((away, -shared[number]))
        found.append(_partners_of(view, views, order[order != number][:LOOKED_AT].tolist(), count))
    return found


def _partners_of(view: PosedView, views: Sequence[PosedView], looked_at: Sequence[int], count: int) -> list[int]:
    worth = {other: _worth(view, views[other]) for other in looked_at}
    seen = np.zeros(len(view.points))
    chosen: list[int] = []
    while len(chosen) < count and worth:
        gains = {other: float((np.exp(-seen) - np.exp(-seen - own)).sum()) for other, own in worth.items()}
        best = max(gains, key=lambda other: (gains[other], -other))
        if gains[best] < LEAST_GAIN * len(seen):
            break
        chosen.append(best)
        seen += worth.pop(best)
    return chosen


def _worth(view: PosedView, other: PosedView) -> np.ndarray:
    """(N,) between 0 and 1: how well the other view helps to find the depth of each point of this one."""
    common = np.isin(view.point_ids, other.point_ids, assume_unique=True)
    rays = [view.points - center for center in (view.center, other.center)]
    lengths = np.linalg.norm(rays[0], axis=1) * np.linalg.norm(rays[1], axis=1)
    cosine = (rays[0] * rays[1]).sum(1) / np.maximum(lengths, 1e-12)
    angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    fading = np.exp(-0.5 * (np.maximum(angle - TOO_WIDE, 0) / FADING) ** 2)
    seen = np.where(common, 1.0, UNMATCHED * _inside(view.points, other))
    return seen * np.minimum(angle / WIDE_ENOUGH, 1) * fading


def _inside(points: np.ndarray, view: PosedView) -> np.ndarray:
    """Which points (N, 3) lie in the picture."""
    there = (points @ view.cam_from_world[:, :3].T + view.cam_from_world[:, 3]) @ view.intrinsics.T
    ahead = there[:, 2] > 0
    return ahead & inside(there[:, :2] / np.where(ahead, there[:, 2], 1)[:, None], view.size)


def _shared_counts(views: Sequence[PosedView]) -> list[np.ndarray]:
    """Of each view, how many points it shares with each of all."""
    from scipy.sparse import csr_array

    points, column = np.unique(np.concatenate([view.point_ids for view in views]), return_inverse=True)
    start = np.concatenate([[0], np.cumsum([len(view.point_ids) for view in views])])
    seen = csr_array((np.ones(len(column), np.int32), column.reshape(-1), start), (len(views), max(1, len(points))))
    common = (seen @ seen.T).tocsr()
    return [common[[row]].toarray().ravel() for row in range(len(views))]
