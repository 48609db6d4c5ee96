"""The queries of a list with their matches, read one by one; model and feature file are checked to belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.query import Query
from pdc_sfm.errors import FormatError
from pdc_sfm.pixels import to_colmap
from pdc_sfm.store.readers import FeatureFile, MatchFile

MOVED = 0.005  # of the larger side: as far as most keypoints of a model may be from those of its feature file


class QueryReader:
    """Iterates over queries with their matches, or (name, reason) for those that have nothing to be localized by."""

    def __init__(
        self,
        cameras: Mapping[str, pycolmap.Camera],
        retrieved: dict[str, list[str]],
        lookup: PointLookup,
        features: FeatureFile,
        matches: MatchFile,
    ):
        self.image_ids = {lookup.model.image(i).name: i for i in lookup.model.reg_image_ids()}
        self.nearest: dict[str, pycolmap.Rigid3d] = {}
        self.missing_images: set[str] = set()
        self.missing_pairs: list[str] = []
        self._cameras, self._retrieved, self._lookup = cameras, retrieved, lookup
        self._features, self._matches = features, matches
        self._checked: set[str] = set()

    def __len__(self) -> int:
        return len(self._cameras)

    def __iter__(self) -> Iterator[Query | tuple[str, str]]:
        for name, camera in self._cameras.items():
            images = self._retrieved.get(name)
            known = [image for image in images or () if image in self.image_ids]
            self.missing_images.update(set(images or ()) - set(known))
            if known:
                self.nearest[name] = self._lookup.model.image(self.image_ids[known[0]]).cam_from_world()
            if not images:
                yield name, "no row in the retrieval list" if images is None else "nothing retrieved"
            elif not known:
                yield name, f"none of its {len(images)} retrieved images is in the model (first: {images[0]})"
            elif name not in self._features:
                yield name, "no keypoints in the feature file"
            else:
                yield self._read(name, camera, known)

    def _read(self, name: str, camera: pycolmap.Camera, images: list[str]) -> Query | tuple[str, str]:
        found = []
        for image in images:
            if (name, image) not in self._matches:
                self.missing_pairs.append(f"{name} {image}")
                continue
            self._check(image)
            found.append((self.image_ids[image], *self._matches.matches(name, image)))
        keypoints = self._features.keypoints(name)
        highest = max((matches[:, 0].max(initial=-1) for _, matches, _ in found), default=-1)
        if highest >= len(keypoints.points):
            raise FormatError(
                f"matches of {name} point to its keypoint {highest}, but it has {len(keypoints.points)}: "
                "features and matches do not belong together"
            )
        if keypoints.image_size not in (None, (camera.width, camera.height)):
            raise FormatError(
                f"{name} is {camera.width} x {camera.height} in the query list, but its features were found on an "
                f"image of {keypoints.image_size[0]} x {keypoints.image_size[1]}"
            )
        if not found:
            return name, "no pair of its retrieval row was matched"
        return Query(name, camera, to_colmap(keypoints.points), found)

    def _check(self, image: str) -> None:
        if image not in self._checked and image in self._features:
            self._checked.add(image)
            check_keypoints(self._lookup, self.image_ids[image], self._features.keypoints(image).points)


def check_keypoints(lookup: PointLookup, image_id: int, points: np.ndarray) -> None:
    """A model must have been made from these keypoints (N, 2) of an image: the same, same order, if moved then a little."""
    posed = lookup.model.image(image_id)
    camera = lookup.model.camera(posed.camera_id)
    points2D, limit = posed.points2D, max(1.0, MOVED * max(camera.width, camera.height))
    if len(points2D) == 0:  # was not among the pairs of the model
        return
    points = to_colmap(points)
    some = np.linspace(0, len(points) - 1, min(len(points), 20)).astype(int)
    if len(points) != len(points2D) or np.median([np.abs(points2D[i].xy - points[i]).max() for i in some]) > limit:
        raise FormatError(
            f"{posed.name} has {len(points2D)} keypoints in the model and {len(points)}, or other ones, in the feature "
            "file: model and features do not belong together"
        )
