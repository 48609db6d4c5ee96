"""COLMAP's SIFT as a matcher that writes hloc files: the baseline goes the same way as everything else."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.database import ROOM, refuse_odd
from pdc_sfm.colmap.options import thread_count
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.errors import ImageError
from pdc_sfm.files import check_room
from pdc_sfm.pixels import from_colmap
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs, write_pairs
from pdc_sfm.store.writers import new_h5, write_keypoints, write_matches

ROOM_OF_IMAGE = 2 << 20  # bytes: 8,192 keypoints with descriptors, and their matches


def match_sift(
    images: Path, pairs: Path, features: Path, matches: Path, fixed: Path | None = None, threads: int = 0
) -> None:
    """Detect and match SIFT features of a pair list. `fixed`, an earlier feature file, saves detecting them again."""
    listed = unique_pairs(read_pairs(pairs))
    names = sorted({name for pair in listed for name in pair})
    for name in names:
        refuse_odd(images / name)
    database = features.with_suffix(".sift.db")
    database.parent.mkdir(parents=True, exist_ok=True)
    database.unlink(missing_ok=True)
    earlier = fixed.with_suffix(".sift.db") if fixed else None
    if earlier and earlier.is_file():
        shutil.copyfile(earlier, database)
    check_room(database.parent, ROOM + ROOM_OF_IMAGE * len(names))
    pycolmap.Database.open(database).close()
    with colmap_log():
        _detect(database, images, names, thread_count(threads))
        _match(database, listed, thread_count(threads))
    _write_files(database, names, listed, features, matches)


def _detect(database: Path, images: Path, names: list[str], threads: int) -> None:
    options = pycolmap.FeatureExtractionOptions(num_threads=threads, use_gpu=False)
    mode, device = pycolmap.CameraMode.PER_IMAGE, pycolmap.Device.cpu
    pycolmap.extract_features(database, images, names, mode, extraction_options=options, device=device)
    with pycolmap.Database.open(database) as opened:
        missing = sorted(set(names) - {image.name for image in opened.read_all_images()})
    if missing:
        raise ImageError(f"{images / missing[0]} cannot be read ({len(missing)} such images)")


def _match(database: Path, pairs: list[tuple[str, str]], threads: int) -> None:
    options = pycolmap.FeatureMatchingOptions(num_threads=threads, use_gpu=False, skip_geometric_verification=True)
    pair_list = database.with_suffix(".pairs.txt")
    write_pairs(pair_list, pairs)
    pairing = pycolmap.ImportedPairingOptions(match_list_path=str(pair_list))
    pycolmap.match_image_pairs(database, options, pairing, device=pycolmap.Device.cpu)
    pair_list.unlink()


def _write_files(database: Path, names: list[str], pairs: list[tuple[str, str]], features: Path, matches: Path) -> None:
    with pycolmap.Database.open(database) as opened, new_h5(matches) as match_file, new_h5(features) as feature_file:
        stored = {image.name: image for image in opened.read_all_images()}
        for name in names:
            camera = opened.read_camera(stored[name].camera_id)
            points = from_colmap(opened.read_keypoints(stored[name].image_id)[:, :2])
            write_keypoints(feature_file, name, points, np.ones(len(points)), (camera.width, camera.height))
        for first, second in pairs:
            found = opened.read_matches(stored[first].image_id, stored[second].image_id).astype(np.int32)
            write_matches(match_file, first, second, found.reshape(-1, 2), np.ones(len(found)))
