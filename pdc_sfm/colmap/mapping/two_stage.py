"""Many points for few keypoints' time: cameras from a part of the matches, then points from all of them."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from pdc_sfm.colmap.mapping.view_graph import Tracks, supported_pairs

# Matches of each pair that thinning leaves, if it has so many: the one pair that tied an image to the rest of a map kept 109
# of 3,419 by the length of tracks alone, and wrong pairs decided where it stood.
TIE = 256


def subsample_matches(database: Path, target: Path, keypoints: int | None, min_support_ratio: float) -> int | None:
    """Copy a database with the matches of strong pairs (`view_graph`) and of so many keypoints an image; None: of all.

    Kept are the keypoints of the longest tracks: the order of tracks is the same in all images, so that what is kept in
    one is kept in the others. A pair that this would leave with few matches keeps more of them, since it may be all that ties
    an image to the rest. Pairs are read one after the other: memory grows with keypoints, not with matches.
    Returns how many pairs are weak, or None if all is as it was and there is no copy.
    """
    with pycolmap.Database.open(database) as opened:
        pairs = _VerifiedPairs(opened)
        strong = supported_pairs(pairs.ids, pairs, pairs.keypoints, min_support_ratio)
        if strong.all() and (keypoints is None or max(pairs.counts, default=0) <= keypoints):
            return None
        chosen = np.flatnonzero(strong).tolist()
        tracks = Tracks(pairs.keypoints)
        for number in chosen:
            tracks.join(pairs[number])
        kept = _of_longest_tracks(tracks, pairs.counts, keypoints or max(pairs.counts))
        for number in chosen:
            _keep_tie(kept, pairs[number])
        shutil.copyfile(database, target)
        with pycolmap.Database.open(target) as thin:
            for number, pair in enumerate(pairs.ids):
                if strong[number]:
                    geometry = opened.read_two_view_geometry(*pair)
                    geometry.inlier_matches = geometry.inlier_matches[kept[pairs[number]].all(axis=1)]
                    thin.update_two_view_geometry(*pair, geometry)
                else:
                    thin.delete_two_view_geometry(*pair)
    return int((~strong).sum())


class _VerifiedPairs(Sequence[np.ndarray]):
    """The verified matches (M, 2) of each pair of a database, read when asked for, with keypoints numbered through."""

    def __init__(self, database: pycolmap.Database):
        images = [image.image_id for image in database.read_all_images()]
        self._database = database
        self.counts = [database.num_keypoints_for_image(image) for image in images]
        self.keypoints = sum(self.counts)
        self._starts = dict(zip(images, np.cumsum([0, *self.counts]).tolist()))
        self.ids = [pycolmap.pair_id_to_image_pair(i) for i in database.read_two_view_geometry_num_inliers()[0]]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, number: Any) -> Any:
        first, second = self.ids[number]
        found = self._database.read_two_view_geometry(first, second).inlier_matches
        return np.add(np.asarray(found, np.int64).reshape(-1, 2), (self._starts[first], self._starts[second]))


def _of_longest_tracks(tracks: Tracks, counts: list[int], keypoints: int) -> np.ndarray:
    """Mask over all keypoints, image after image, of these tracks: those of the longest, `keypoints` an image at most."""
    bounds = np.cumsum([0, *counts]).tolist()
    length, kept = np.zeros(bounds[-1], np.uint16), np.zeros(bounds[-1], bool)
    for bound in itertools.pairwise(bounds):  # an image counts once for a track
        length[np.unique(tracks.of(np.arange(*bound)))] += np.uint16(1)
    for bound in itertools.pairwise(bounds):
        part = np.arange(*bound)
        track = tracks.of(part)
        kept[part[np.lexsort((_shuffled(track), -length[track].astype(np.int32)))[:keypoints]]] = True
    return kept


def _keep_tie(kept: np.ndarray, found: np.ndarray) -> None:
    """Add keypoints of a pair's matches (M, 2), so that `TIE` of them have both ends."""
    lost = found[~kept[found].all(axis=1)]
    needed = TIE - (len(found) - len(lost))
    if needed > 0:
        kept[lost[np.argsort(_shuffled(lost[:, 0]), kind="stable")[:needed]]] = True


def _shuffled(numbers: np.ndarray) -> np.ndarray:
    """A number for each that has no order of its own, the same wherever it is asked for (Knuth's multiplicative hash)."""
    return (numbers.astype(np.uint64) * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)


def triangulate_all(
    model: pycolmap.Reconstruction, database: Path, images: Path, options: Any
) -> pycolmap.Reconstruction:
    """The points of all matches of a database, by the cameras of a model, which stay. `options` as of the mapper."""
    folder = database.with_suffix(".points")
    folder.mkdir()
    found = pycolmap.triangulate_points(model, database, images, folder, options=options)
    shutil.rmtree(folder)
    return found
