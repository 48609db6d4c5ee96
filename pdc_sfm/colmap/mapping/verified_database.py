"""A new database of images, keypoints and the matches of each pair that agree with one geometry: what `reconstruct` maps."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pycolmap

from pdc_sfm.colmap.io import database as db
from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.inputs import MappingInputs
from pdc_sfm.colmap.io.models import ReconstructionError
from pdc_sfm.colmap.io.rigs import Rigs
from pdc_sfm.colmap.mapping.coverage_cells import cell_numbers
from pdc_sfm.colmap.mapping.verification import VerificationSettings, stationary, unverified, verify_by_estimation
from pdc_sfm.colmap.options import thread_count
from pdc_sfm.progress import progress

# Of the matches of a middle pair, beyond which what stands still in the pictures finds no cameras: it is held with the camera (a
# background behind a turntable, a frame), or so far away that it says nothing of where cameras stand. Where cameras move it is
# next to nothing (.00 of a castle, a kitchen), before turntables .90 and 1.00.
MOST_STILL = 0.5
# Of the cells of a picture in which things move in some pair, those that stand still in another, from which the things themselves
# stand as they did: most.
SAME_VIEW = 0.5
FEWEST_CELLS = 100  # of them, for a share to mean something


class Stillness(NamedTuple):
    """What stands still in the pictures."""

    moving: bool = False  # what does was left out, since most matches do
    same_views: tuple[tuple[str, str], ...] = ()  # pairs in which what moves in others stands still as well


class FillingSettings(Protocol):
    """What the database needs to know of a reconstruction's settings."""

    @property
    def camera(self) -> CameraSettings: ...
    @property
    def verification(self) -> VerificationSettings: ...
    @property
    def verify(self) -> bool: ...
    @property
    def min_score(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def threads(self) -> int: ...


def fill_verified(
    path: Path, images: Path, inputs: MappingInputs, settings: FillingSettings, rigs: Rigs = ()
) -> Stillness:
    """Write a database. If most matches stand still in the pictures, they are left out."""
    image_ids = db.create_from_images(path, images, list(inputs.names), settings.camera, rigs)
    max_error = settings.verification.max_error
    still: dict[tuple[str, str], float] = {}  # share of a pair's verified matches
    standing: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}  # their cells in both pictures
    things: dict[str, set[int]] = {}  # cells of each picture in which something moves
    with pycolmap.Database.open(path) as database:
        by_id = {camera.camera_id: camera for camera in database.read_all_cameras()}
        cameras = {image.name: by_id[image.camera_id] for image in database.read_all_images()}

        def verify(name0: str, name1: str, found: np.ndarray, moving: bool = False) -> pycolmap.TwoViewGeometry:
            if not settings.verify:
                return unverified(found)
            points = inputs.keypoints.points(name0), inputs.keypoints.points(name1)
            both = cameras[name0], cameras[name1]
            if moving:
                stands = stationary(points, found, max_error, both)
                standing[name0, name1] = _cells(points, found[stands], both)
                found = found[~stands]
            geometry = verify_by_estimation(both, points, found, settings.verification, settings.seed)
            if len(inliers := np.asarray(geometry.inlier_matches)):
                if moving:
                    for name, cells in zip((name0, name1), _cells(points, inliers, both)):
                        things.setdefault(name, set()).update(cells.tolist())
                else:
                    still[name0, name1] = float(stationary(points, inliers, max_error, both).mean())
            return geometry

        def write(verify: db.Verifier, what: str) -> int:
            pairs, threads = progress(inputs.pairs, what, "pair"), thread_count(settings.threads)
            return db.write_matches(
                database, image_ids, pairs, inputs.matches, inputs.keypoints, verify, settings.min_score, threads
            )

        db.write_keypoints(database, image_ids, progress(inputs.names, "keypoints", "image"), inputs.keypoints)
        kept = write(verify, "verification")
        moving = bool(still) and float(np.median(list(still.values()))) > MOST_STILL
        if moving:
            database.clear_matches()
            database.clear_two_view_geometries()
            kept = write(functools.partial(verify, moving=True), "what moves")
    if kept == 0:
        least = settings.verification.min_inliers
        raise ReconstructionError(
            f"none of {len(inputs.pairs)} pairs has {least} matches that "
            + ("move and agree" if moving else "agree")
            + " with one geometry: "
            + ("the pictures may be of one place" if moving else "the images may not overlap")
            + ", or features and matches are of other images"
        )
    return Stillness(moving, _same_views(standing, things))


def _cells(
    points: tuple[np.ndarray, np.ndarray], matches: np.ndarray, cameras: tuple[pycolmap.Camera, pycolmap.Camera]
) -> tuple[np.ndarray, np.ndarray]:
    """The cells of both pictures that matches (M, 2) lie in."""
    first, second = (np.unique(cell_numbers(p[c], camera)) for p, c, camera in zip(points, matches.T, cameras))
    return first, second


def _same_views(
    standing: Mapping[tuple[str, str], tuple[np.ndarray, np.ndarray]], things: Mapping[str, set[int]]
) -> tuple[tuple[str, str], ...]:
    """Pairs in which most of what moves in other pairs stands still."""

    def is_same(names: tuple[str, str]) -> bool:
        for name, cells in zip(names, standing[names]):
            moved = things.get(name, set())
            if len(moved) < FEWEST_CELLS or len(moved.intersection(cells.tolist())) <= SAME_VIEW * len(moved):
                return False
        return True

    return tuple(sorted(filter(is_same, standing)))
