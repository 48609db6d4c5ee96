"""COLMAP's database: writes images, cameras, keypoints and verified matches for the mapper.

Nothing is written in a `pycolmap.DatabaseTransaction`: where the disk is full its end throws where C++ cannot catch, and the
process dies. It saves no time either: COLMAP's databases do not wait for the disk.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.rigs import Rigs, apply_rigs
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.errors import FormatError, ImageError, SettingsError, StorageError
from pdc_sfm.files import check_room
from pdc_sfm.pixels import to_colmap
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.store.readers import FeatureFile, MatchFile

ROOM = 16 << 20  # bytes; an empty database and its log take one of these sixteen
ROOM_OF_IMAGE = 8 << 10  # its name, camera, rig and frame
T = TypeVar("T")
R = TypeVar("R")
Verifier = Callable[[str, str, np.ndarray], pycolmap.TwoViewGeometry]  # names and (M, 2) matches -> those that hold


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What COLMAP says when it cannot write its database has many words, none of which is `full`."""
    try:
        yield
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise StorageError(f"COLMAP cannot fill its database {path}: {reason}; is there room on the disk?") from None


class DatabaseKeypoints:
    """Keypoints of a feature file in COLMAP's coordinates, the last ones used kept in memory."""

    def __init__(self, features: FeatureFile, kept: int = 512):
        self._read = functools.lru_cache(kept)(features.keypoints)

    def points(self, name: str) -> np.ndarray:
        """(N, 2) float32."""
        return to_colmap(self._read(name).points)

    def uncertainty(self, name: str) -> np.ndarray | float:
        """Pixels, for the image or (N,) for each keypoint; 1 if the file does not say."""
        value = self._read(name).uncertainty
        return 1.0 if value is None else value

    def image_size(self, name: str) -> tuple[int, int] | None:
        """(width, height) if the file says."""
        return self._read(name).image_size


def create_from_images(
    path: Path, image_dir: Path, names: list[str], settings: CameraSettings, rigs: Rigs = ()
) -> dict[str, int]:
    """A new database of images, with cameras guessed from EXIF or as given. Returns the images' ids.

    Each camera of a rig is one, and rigs whose cameras' poses are known are written.
    """
    for name in names:
        refuse_odd(image_dir / name)
    check_room(path.parent, ROOM + ROOM_OF_IMAGE * len(names))
    pycolmap.Database.open(path).close()
    for part, chosen in _by_camera(names, settings, rigs):
        options = pycolmap.ImageReaderOptions(camera_model=chosen.model)
        options.camera_params = ",".join(repr(p) for p in chosen.params)
        with colmap_log():
            mode = pycolmap.CameraMode.__members__[chosen.mode.upper()]
            pycolmap.import_images(path, image_dir, mode, image_names=part, options=options)
        with pycolmap.Database.open(path) as database:
            ids = {image.name: image.image_id for image in database.read_all_images()}
        missing = sorted(set(part) - set(ids))
        if missing:
            _explain_missing(image_dir, missing, chosen, bool(rigs))
    if rigs and all(rig.is_known for rig in rigs):
        with colmap_log(), pycolmap.Database.open(path) as database:
            apply_rigs(database, rigs)
    return ids


def _by_camera(names: list[str], settings: CameraSettings, rigs: Rigs) -> list[tuple[list[str], CameraSettings]]:
    """Images of each camera of a rig, and all others, with the settings of each part."""
    parts, left = [], names
    for camera in (camera for rig in rigs for camera in rig.cameras):
        own = [name for name in left if name.startswith(camera.prefix)]
        model, params = (camera.model, camera.params) if camera.model else (settings.model, settings.params)
        parts.append((own, dataclasses.replace(settings, mode="single", model=model, params=params)))
        left = [name for name in left if not name.startswith(camera.prefix)]
    return parts + ([(left, settings)] if left else [])


def refuse_odd(path: Path) -> None:
    """COLMAP would wait for ever for what a pipe says. What is not there is explained afterwards."""
    if path.exists() and not path.is_file():
        raise ImageError(f"{path} is a folder, a pipe or a device, not an image: replace or remove it")


def _explain_missing(image_dir: Path, missing: list[str], settings: CameraSettings, of_rig: bool) -> None:
    """COLMAP leaves images out without an error: find the reason."""
    from pdc_sfm.images import read_image

    for name in missing:
        read_image(image_dir / name)  # says so if it cannot be read
    if of_rig and settings.mode == "single":
        raise SettingsError(f"a camera of a rig takes images of one size, {missing[0]} has another: leave it out")
    if settings.mode in ("single", "per_folder"):
        raise SettingsError(
            f"camera.mode={settings.mode} needs images of one size, {missing[0]} has another: use camera.mode=per_image"
        )
    raise ImageError(
        f"COLMAP cannot read {image_dir / missing[0]} ({len(missing)} such images): convert it to JPEG, as `map` does by itself"
    )


def create_from_model(path: Path, model: pycolmap.Reconstruction) -> dict[str, int]:
    """A new database of the images and cameras of a model, with the same ids. Returns the images' ids."""
    with pycolmap.Database.open(path) as database:
        for camera in model.cameras.values():
            database.write_camera(camera, use_camera_id=True)
        for rig in model.rigs.values():
            database.write_rig(rig, use_rig_id=True)
        for frame in model.frames.values():
            database.write_frame(frame, use_frame_id=True)
        for image in model.images.values():
            database.write_image(image, use_image_id=True)
    return {image.name: image_id for image_id, image in model.images.items()}


def write_keypoints(
    database: pycolmap.Database, image_ids: Mapping[str, int], names: Iterable[str], keypoints: DatabaseKeypoints
) -> None:
    """Write the keypoints of the named images, after checking that they were found on images of that size."""
    sizes = {c.camera_id: (c.width, c.height) for c in database.read_all_cameras()}
    camera_ids = {image.image_id: image.camera_id for image in database.read_all_images()}
    for name in names:
        found, expected = keypoints.image_size(name), sizes[camera_ids[image_ids[name]]]
        if found is not None and found != expected:
            raise FormatError(
                f"{name} is {expected[0]} x {expected[1]} for COLMAP, but its features were found on an image of "
                f"{found[0]} x {found[1]}: model and features do not belong together"
            )
        database.write_keypoints(image_ids[name], keypoints.points(name))


def write_matches(
    database: pycolmap.Database,
    image_ids: Mapping[str, int],
    pairs: Iterable[Pair],
    matches: MatchFile,
    keypoints: DatabaseKeypoints,
    verify: Verifier,
    min_score: float,
    threads: int,
) -> int:
    """Write matches and what `verify` keeps of them; returns how many were kept. Pairs must be unique."""

    def read(pair: Pair) -> tuple[Pair, np.ndarray]:
        found, scores = matches.matches(*pair)
        for side, name in enumerate(pair):
            count = len(keypoints.points(name))
            if len(found) and found[:, side].max() >= count:
                raise FormatError(
                    f"matches of {pair[0]} {pair[1]} point to keypoint {found[:, side].max()} of {name}, which has "
                    f"{count}: features and matches do not belong together"
                )
        return pair, found[scores >= min_score]

    def check(item: tuple[Pair, np.ndarray]) -> tuple[Pair, np.ndarray, pycolmap.TwoViewGeometry | None]:
        pair, found = item
        return pair, found, verify(*pair, found) if len(found) else None

    kept = 0
    for pair, found, geometry in in_threads(check, map(read, pairs), threads):
        ids = image_ids[pair[0]], image_ids[pair[1]]
        database.write_matches(*ids, found.astype(np.uint32))
        if geometry is not None and len(geometry.inlier_matches):
            database.write_two_view_geometry(*ids, geometry)
            kept += len(geometry.inlier_matches)
    return kept


def in_threads(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """`map`, in threads, in order, with few items under way at once (their data fit in memory)."""
    iterator = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        running = deque(pool.submit(function, item) for item in itertools.islice(iterator, 4 * threads))
        while running:
            result = running.popleft().result()
            running.extend(pool.submit(function, item) for item in itertools.islice(iterator, 1))
            yield result
