"""Links that repeated structure alone supports: walls of equal windows match each other wherever they stand.

Matches on what repeats tell that two images show walls of one design, not that they show one wall. What tells that is what is
to be found in one place only: a poster, a broken pane, a stain. Keypoints of a detector stand for both. One repeats if it is as
good as equal to another place of its picture; a match of two is distinctive if its descriptors are nearer to each other than
to anything else in both pictures, and to anything that repeats in any picture of the link (Lowe's ratio test, whose second
nearest is sought there too). A link is doubted if much of what it rests on repeats and next to nothing is distinctive.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pycolmap
from scipy.spatial import cKDTree

from pdc_sfm.colmap.mapping.coverage_cells import GRID
from pdc_sfm.colmap.mapping.evidence import PairEvidence, frame_images
from pdc_sfm.colmap.mapping.links import Link, find_links, supports
from pdc_sfm.errors import ImageError
from pdc_sfm.images import fitted_size, read_image, resize_image
from pdc_sfm.sift import RATIO, describe

log = logging.getLogger(__name__)

SIDE = 640  # pixels of the longer side, at most, in which keypoints are looked for
KEYPOINTS = 2048  # of an image, the strongest
MOST_PAIRS = 8  # of a link, the strongest
EQUAL = 0.92  # likeness of descriptors, a cosine, from which two places of a picture show the same thing
KNOWN = 0.9  # from which both are known to repeat
APART = 0.03  # of the longer side: nearer to each other, two places are one
BESIDE = 0.02  # of the longer side: nearer to a verified match, a keypoint is matched by it
# Of a link's keypoints: .33 and more where a wing of a court was laid over another; of right links whose wide pairs have hardly
# a distinctive match .27 at most (Herz-Jesus, a kitchen). Of a castle, an entry and rooms it is more, which such matches prove.
MIN_REPEATED = 0.3
FEWEST_KEYPOINTS = 100  # of a link, for a share to mean something
# Cells with distinctive matches, by keypoints: .0037 at most of links that join two wings of a court, .011 and more of right ones
# of photographs and rooms, in pictures 320 and 1024 pixels wide; this is the geometric mean.
MIN_DISTINCTIVE = 0.006
FEWEST_DISTINCTIVE = 4  # cells at least
KEPT = 1024  # images whose keypoints are kept in memory, half a megabyte each


class LinkKeypoints(NamedTuple):
    """What the keypoints beside the matches of a link say together."""

    number: int
    repeated: int  # that show what their picture shows elsewhere too
    # cells with matches that nothing else is like, where those of the link say; counted if much repeats, until they are enough
    distinctive: int = 0

    @property
    def share(self) -> float:
        """Of what the link rests on that repeats."""
        return self.repeated / max(1, self.number)

    @property
    def repeats(self) -> bool:
        """Whether only what repeats supports the link."""
        many = self.number >= FEWEST_KEYPOINTS and self.share > MIN_REPEATED
        return many and self.distinctive < max(FEWEST_DISTINCTIVE, MIN_DISTINCTIVE * self.number)


class _Matched(NamedTuple):
    """A pair of images and where its verified matches lie in them, in parts of the longer side."""

    first: int
    second: int
    places0: np.ndarray  # (M, 2)
    places1: np.ndarray


class _Picture(NamedTuple):
    """Keypoints of an image."""

    points: np.ndarray  # (N, 2), in parts of the longer side
    words: np.ndarray  # (N, 128) float16, of unit length
    elsewhere: np.ndarray  # (N,) likeness of the most alike other place of the picture


class RepeatedLinks:
    """Looks at the pictures of links."""

    def __init__(self, model: pycolmap.Reconstruction, database: Path, images: Path):
        self._model, self._database, self._images = model, database, images
        self._picture = functools.lru_cache(KEPT)(self._read_picture)

    def keypoints(self, link: Link, pairs: Sequence[PairEvidence]) -> LinkKeypoints:
        """Of the strongest pairs that support a link; where next to nothing of the strongest repeats, of this one alone."""
        across = [pair for pair in pairs if supports(pair) and (pair.first in link.part) != (pair.second in link.part)]
        strongest = sorted(across, key=lambda pair: -pair.explained_cells)[:MOST_PAIRS]
        with pycolmap.Database.open(self._database) as opened:
            matched = [self._matched(opened, pair.first, pair.second) for pair in strongest]
        matched = [one for one in matched if len(one.places0)]
        found = self._repeating(matched[:1])
        if found.share <= MIN_REPEATED / 2:
            return found
        found = self._repeating(matched)
        if not found.repeats:
            return found
        known = [self._picture(image) for image in sorted({i for one in matched for i in (one.first, one.second)})]
        anywhere = np.concatenate([one.words[one.elsewhere > KNOWN] for one in known]).astype(np.float32)
        for one in matched:
            if found.repeats:
                found = found._replace(distinctive=found.distinctive + self._distinctive_cells(one, anywhere))
        return found

    def _repeating(self, matched: Sequence[_Matched]) -> LinkKeypoints:
        number = repeated = 0
        for one in matched:
            sides = (self._picture(one.first), one.places0), (self._picture(one.second), one.places1)
            if min(len(picture.points) for picture, _ in sides) == 0:
                continue
            for picture, places in sides:
                beside = _nearest(picture.points, places)[0] < BESIDE
                number += int(beside.sum())
                repeated += int((picture.elsewhere[beside] > EQUAL).sum())
        return LinkKeypoints(number, repeated)

    def _matched(self, opened: pycolmap.Database, first: int, second: int) -> _Matched:
        """Of images that stand for their frames in a rig, there may be no matches."""
        matches = np.asarray(opened.read_two_view_geometry(first, second).inlier_matches, np.int64).reshape(-1, 2)
        cameras = [self._model.camera(self._model.image(image).camera_id) for image in (first, second)]
        places = (
            opened.read_keypoints(image)[column, :2] / max(camera.width, camera.height)
            for image, column, camera in zip((first, second), matches.T, cameras)
        )
        return _Matched(first, second, *places)

    def _read_picture(self, image_id: int) -> _Picture:
        try:
            pixels = read_image(self._images / self._model.image(image_id).name)
        except ImageError as error:  # a finished map is not lost for it
            log.warning("not looked at for what repeats: %s", error)
            return _Picture(np.zeros((0, 2)), np.zeros((0, 128), np.float16), np.zeros(0))
        size = fitted_size((pixels.shape[1], pixels.shape[0]), max_side=SIDE)
        points, words = describe(resize_image(pixels, size), KEYPOINTS)
        points = (points + 0.5) / max(size)
        return _Picture(points, words.astype(np.float16), _most_alike(words @ words.T, points, points))

    def _distinctive_cells(self, pair: _Matched, anywhere: np.ndarray) -> int:
        """Cells with matches of keypoints that are more alike than any others, also those (K, 128) that repeat anywhere."""
        one, other = self._picture(pair.first), self._picture(pair.second)
        if min(len(one.points), len(other.points)) == 0:
            return 0
        words = [picture.words.astype(np.float32) for picture in (one, other)]
        distance, partner = _nearest(one.points, pair.places0)
        expected = one.points + (pair.places1 - pair.places0)[partner]
        alike = words[0] @ words[1].T
        best, nearest = alike.argmax(1), alike.max(1)
        second = np.maximum(_most_alike(alike, other.points[best], other.points), one.elsewhere)
        second = np.maximum(second, other.elsewhere[best])
        agrees = np.linalg.norm(other.points[best] - expected, axis=1) < APART
        mutual = alike.argmax(0)[best] == np.arange(len(best))
        (chosen,) = np.nonzero((distance < BESIDE) & agrees & mutual & (_apart(nearest) < RATIO * _apart(second)))
        for own in (words[0][chosen], words[1][best[chosen]]):  # last, since it takes longest
            second[chosen] = np.maximum(second[chosen], (own @ anywhere.T).max(1, initial=-1))
        chosen = chosen[_apart(nearest[chosen]) < RATIO * _apart(second[chosen])]
        return len(np.unique((one.points[chosen] * GRID).astype(int), axis=0))


def _nearest(points: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) how far points (N, 2) are from the nearest of some places (M, 2), and its number."""
    return cKDTree(places).query(points)


def _most_alike(alike: np.ndarray, places: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(N,) the largest likeness (N, M) of each to keypoints (M, 2) that are `APART` from its place (N, 2)."""
    x, y = ((places[:, None, axis] - points[None, :, axis]) ** 2 for axis in (0, 1))
    return np.where(x + y > APART**2, alike, -1).max(1, initial=-1)


def _apart(likeness: np.ndarray) -> np.ndarray:
    """The distance of unit descriptors."""
    return np.sqrt(np.maximum(2 - 2 * likeness, 1e-9))


def repeated_links(
    model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence], database: Path, images: Path
) -> list[tuple[Link, LinkKeypoints]]:
    """The links that only what repeats supports."""
    look = RepeatedLinks(model, database, images)
    links = find_links(set(frame_images(model).values()), pairs)
    found = [(link, look.keypoints(link, pairs)) for link in links]
    return [(link, keypoints) for link, keypoints in found if keypoints.repeats]
