"""A projected scene written as the Aachen dataset is: NVM, intrinsics, query lists, and the challenge's files."""

import sqlite3
from pathlib import Path

import numpy as np
import pycolmap
from projections import Scene, make_scene, write_features, write_images, write_matches, write_pairs, write_queries

from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.store.pair_lists import read_pairs

DATABASE = [f"db/{i}.png" for i in range(6)]
SEQUENCE = ["sequences/gopro3/0.png"]
DAY = ["query/day/nexus4/d0.png"]
NIGHT = ["query/night/nexus5x/n0.png", "query/night/nexus5x/n1.png"]

# As the challenge's files are: cameras and images only, in the schema of COLMAP 3.4.
SCHEMA = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);
CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,
    camera_id INTEGER NOT NULL, prior_qw REAL, prior_qx REAL, prior_qy REAL, prior_qz REAL, prior_tx REAL,
    prior_ty REAL, prior_tz REAL, CONSTRAINT image_id_check CHECK(image_id >= 0 and image_id < 2147483647),
    FOREIGN KEY(camera_id) REFERENCES cameras(camera_id));
CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE matches (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);
CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB);
CREATE UNIQUE INDEX index_name ON images(name);
PRAGMA user_version = 3400;
"""


def write_dataset(root: Path, version: str) -> tuple[Scene, AachenDataset]:
    """A complete dataset folder. One database image has no pose, as 151 of the real ones."""
    posed = DATABASE + (SEQUENCE if version == "1.1" else [])
    order = [posed[0], NIGHT[0], *posed[1:3], DAY[0], *posed[3:5], NIGHT[1], *posed[5:], "db/unposed.png"]
    scene = make_scene(order)
    dataset = AachenDataset(root, version)
    write_images(scene, root / "images_upright")
    dataset.nvm.parent.mkdir(parents=True)
    write_nvm(scene, dataset.nvm, posed)
    write_queries(scene, dataset.intrinsics, posed)
    text = dataset.intrinsics.read_text().splitlines(keepends=True)[1:]
    dataset.intrinsics.write_text("".join(text))  # the official file has no comment
    dataset.night_queries.parent.mkdir()
    write_queries(scene, dataset.night_queries, NIGHT)
    write_queries(scene, dataset.queries.parent / "day_time_queries_with_intrinsics.txt", DAY)
    write_database(scene, dataset.challenge_database, [*DAY, *NIGHT])
    pairs = scene.pairs([*posed, "db/unposed.png"]) + [(query, image) for query in NIGHT for image in posed]
    write_pairs(dataset.challenge_pairs, pairs + [(b, a) for a, b in pairs[::3]])  # with reversed duplicates
    return scene, dataset


def write_nvm(scene: Scene, path: Path, names: list[str]) -> None:
    """Poses as quaternion and center; points with their observations."""
    lines = ["NVM_V3 \n\n", f"{len(names)}\n"]
    for name in names:
        pose = pycolmap.Rigid3d(scene.poses[name])
        x, y, z, w = pose.rotation.quat
        numbers = " ".join(f"{n:.15g}" for n in (w, x, y, z, *pose.inverse().translation))
        lines.append(f"{name} {scene.cameras[name].params[0]:.8f} {numbers} 0.01 0\n")
    lines.append(f"\n{len(scene.points)}\n")
    for number, point in enumerate(scene.points):
        seen = [(i, k) for i, name in enumerate(names) for k in np.flatnonzero(scene.visible[name] == number)]
        observations = " ".join(f"{i} {k} 0.0 0.0" for i, k in seen)
        lines.append(f"{point[0]} {point[1]} {point[2]} 9 9 9 {len(seen)} {observations}\n")
    path.write_text("".join(lines) + "\n0\n")


def write_database(scene: Scene, path: Path, calibrated: list[str]) -> None:
    """Intrinsics are true for the queries and COLMAP's guess for the others, as in version 1.0."""
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
        for number, name in enumerate(sorted(scene.names, reverse=True), start=1):
            camera = scene.cameras[name]
            guess = [1.2 * max(camera.width, camera.height), camera.width / 2, camera.height / 2, 0.0]
            params = np.array(camera.params if name in calibrated else guess)
            row = (number, camera.model.value, camera.width, camera.height, params.tobytes(), 0)
            connection.execute("INSERT INTO cameras VALUES (?, ?, ?, ?, ?, ?)", row)
            row = (number, name, number)
            connection.execute("INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, ?)", row)
    connection.close()


def exact_matcher(scene: Scene, calls: list[str] | None = None):
    """Stands for the network: writes exact features and matches of a pair list."""

    def match(images: Path, pairs: Path, features: Path, matches: Path, fixed: Path | None = None) -> None:
        if calls is not None:
            calls.append(pairs.name)
        listed = read_pairs(pairs)
        write_features(scene, features)
        write_matches(scene, matches, listed)

    return match
