"""A copy of a given database with our keypoints and matches, verified as COLMAP does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pycolmap

from pdc_sfm.colmap.io import database as db
from pdc_sfm.colmap.io.database_images import read_database_images
from pdc_sfm.colmap.io.inputs import open_inputs
from pdc_sfm.files import atomic_path, check_room
from pdc_sfm.progress import progress
from pdc_sfm.store.pair_lists import read_pairs, write_pairs

CHUNK = 200  # pairs verified at a time, so that an interrupted run repeats little


def fill_database(source: Path, target: Path, pairs: Path, features: Path, matches: Path) -> None:
    """Copy a database and write keypoints and matches of all pairs into the copy, at once."""
    ids = {name: image.image_id for name, image in read_database_images(source).items()}
    with open_inputs(pairs, features, matches) as inputs, db.writing(target), atomic_path(target) as partial:
        shutil.copyfile(source, partial)
        with pycolmap.Database.open(partial) as database:
            names = progress(inputs.names, "keypoints", "image")
            db.write_keypoints(database, ids, names, inputs.keypoints)
            for first, second in progress(inputs.pairs, "matches", "pair"):
                found, _ = inputs.matches.matches(first, second)
                database.write_matches(ids[first], ids[second], found.astype("uint32"))


def verify_database(database: Path, pairs: Path, seed: int) -> None:
    """COLMAP's geometric verification of the pairs that have none yet."""
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.random_seed = seed
    with pycolmap.Database.open(database) as opened:
        ids = {image.name: image.image_id for image in opened.read_all_images()}
        listed = read_pairs(pairs)
        waiting = [pair for pair in listed if not opened.exists_two_view_geometry(ids[pair[0]], ids[pair[1]])]
    check_room(
        database.parent, db.ROOM + 2 * database.stat().st_size
    )  # no more matches than there are, and a log of them
    chunk_list = database.with_name("pairs_in_work.txt")
    with progress(None, "verification", "pair", len(listed), len(listed) - len(waiting)) as bar:
        for start in range(0, len(waiting), CHUNK):
            chunk = waiting[start : start + CHUNK]
            write_pairs(chunk_list, chunk)
            pycolmap.verify_matches(database, chunk_list, options)
            bar.update(len(chunk))
    chunk_list.unlink(missing_ok=True)
