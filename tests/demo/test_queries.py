"""Photographs localized in a map by one call."""

import dataclasses
import json
import shutil

import h5py
import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.frame import MapFrame, write_frame
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.demo.queries import localize_in_map, open_map, table
from pdc_sfm.demo.query_intrinsics import intrinsics_of
from pdc_sfm.errors import FormatError, ImageError
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.images import write_image
from pdc_sfm.store.pair_lists import read_pairs
from pdc_sfm.store.pair_lists import write_pairs as write_list

MAP = [f"{i}.png" for i in range(5)]
LINKED = ["query/a.png", "query/night_b_c.png"]  # a.png, and "night/b c.png", as lists can hold it
OWN = ["a.png", "night/b c.png"]


@pytest.fixture(scope="module")
def scene():
    return make_scene([*MAP[:2], *LINKED, *MAP[2:]], model="SIMPLE_PINHOLE", params=(500, 320, 240), vary=0)


@pytest.fixture
def world(scene, tmp_path):
    """A map as `triangulate` writes it, and a folder of queries."""
    pairs = scene.pairs(MAP)
    features, matches = write_features(scene, tmp_path / "f.h5", MAP), write_matches(scene, tmp_path / "m.h5", pairs)
    known, images = write_model(scene, tmp_path / "known", MAP), write_images(scene, tmp_path / "photos", MAP)
    triangulate(known, images, write_pairs(tmp_path / "p.txt", pairs), features, matches, tmp_path / "sfm")
    write_images(scene, tmp_path / "made", LINKED)
    for link, name in zip(LINKED, OWN):
        (tmp_path / "queries" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "made" / link, tmp_path / "queries" / name)
    return tmp_path


@pytest.fixture
def found(monkeypatch):
    """Retrieval that answers every query with all images; what it was asked."""
    asked = []

    def retrieve(images, queries, database, output, top, settings, network=None):
        assert all((images / name).is_file() for name in [*queries, *database])
        asked.append(list(queries))
        write_list(output, [(query, name) for query in queries for name in database[:top]])

    monkeypatch.setattr("pdc_sfm.demo.queries.retrieve", retrieve)
    return asked


def exact(scene, calls):
    def match(images, pairs, features, matches, fixed=None):
        calls.append(fixed.name)
        write_features(scene, features)
        write_matches(scene, matches, read_pairs(pairs))

    return match


def test_every_query_is_where_it_was_taken(scene, world, found):
    calls = []
    result, rows = localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, calls))
    assert set(calls) == {"f.h5"}  # the keypoints of the map stay as they are
    assert list(rows) == OWN
    assert all(row.localized and row.inliers > 50 and row.camera == "the map's camera" for row in rows.values())
    poses = read_poses(world / "out" / "results.txt")
    assert list(poses) == ["a.png", "night/b_c.png"]
    for pose, link in zip(poses.values(), LINKED):
        metres, degrees = pose_error(pose, scene.poses[link])
        assert metres < 1e-3
        assert degrees < 1e-2
    assert "night/b c.png" in table(rows)
    assert all(0 < row.probability < 1 for row in rows.values())
    doubted = dataclasses.replace(rows[OWN[0]], doubt="nobody vouches for it")
    assert f" {doubted.probability:.2f}  the map's camera; doubtful: nobody vouches" in table({OWN[0]: doubted})
    stated = json.loads((world / "out" / "results.json").read_text())["queries"][OWN[0]]["probability"]
    assert stated == pytest.approx(rows[OWN[0]].probability)
    first = len(calls)
    localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, calls))
    assert (len(calls), len(found)) == (first, 1)  # the second time nothing is repeated


def test_another_photograph_of_the_same_name_is_localized_anew(scene, world, found):
    calls = []
    localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, calls))
    first = len(calls)
    write_image(world / "queries" / OWN[0], np.full((480, 640, 3), 9, np.uint8))
    localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, calls))
    assert (len(calls), len(found)) == (2 * first, 2)


def test_a_map_with_other_keypoints_is_matched_anew(scene, world, found):
    calls = []
    localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, calls))
    first = len(calls)
    with h5py.File(world / "f.h5", "a") as file:
        file.attrs["made"] = "anew"
    localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, calls))
    assert (len(calls), len(found)) == (2 * first, 1)


def test_in_a_map_with_an_origin_queries_have_a_place_on_the_earth(scene, world, found):
    frame = MapFrame((60.0, 10.0, 100.0), 0.01, "positions", 1.0)
    write_frame(world / "sfm", frame)
    _, rows = localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, []))
    pose = scene.poses[LINKED[0]]
    east, north, up = -pose[:, :3].T @ pose[:, 3]
    latitude, longitude, altitude = rows[OWN[0]].place
    assert latitude == pytest.approx(60 + north / 111_412, abs=1e-7)  # metres of a degree at 60 north, WGS84
    assert longitude == pytest.approx(10 + east / 55_800, abs=1e-7)
    assert altitude == pytest.approx(100 + up, abs=1e-2)
    assert f"{latitude:.7f} {longitude:.7f}" in table(rows)
    stated = json.loads((world / "out" / "results.json").read_text())["queries"][OWN[0]]["place"]
    assert stated == [latitude, longitude, altitude]


def test_a_portrait_has_the_camera_of_a_map_of_landscapes_turned():
    model = pycolmap.Reconstruction()
    model.add_camera_with_trivial_rig(
        pycolmap.Camera(model="PINHOLE", width=640, height=480, params=[500, 510, 322, 239], camera_id=1)
    )
    camera, source = intrinsics_of((480, 640), None, model)
    assert (camera.width, camera.height, source) == (480, 640, "the map's camera, turned")
    assert camera.params.tolist() == [
        510,
        500,
        240,
        320,
    ]  # axes change places; to which side it was turned is not known
    assert intrinsics_of((640, 480), None, model)[1] == "the map's camera"
    with pytest.raises(FormatError, match=r"not known \(300 x 640"):
        intrinsics_of((300, 640), None, model)
    lens = pycolmap.Reconstruction()  # whose errors would have to be turned too
    lens.add_camera_with_trivial_rig(
        pycolmap.Camera(
            model="OPENCV", width=640, height=480, params=[500, 500, 320, 240, 0.1, 0, 0.01, 0], camera_id=1
        )
    )
    with pytest.raises(FormatError, match="not known"):
        intrinsics_of((480, 640), None, lens)


def test_a_query_without_known_intrinsics_is_named_and_a_list_gives_them(scene, world, found):
    other = make_scene(["x.png"], size=(400, 300), model="SIMPLE_PINHOLE", params=(300, 200, 150), vary=0)
    write_images(other, world / "queries")
    mapped = open_map(world / "sfm")
    _, rows = localize_in_map(mapped, world / "queries", world / "out", match=exact(scene, []))
    assert not rows["x.png"].localized
    assert "intrinsics are not known (400 x 300" in rows["x.png"].reason
    assert "--queries" in rows["x.png"].reason
    assert found == [LINKED]
    (world / "list.txt").write_text("a.png SIMPLE_PINHOLE 640 480 500 320 240\n")
    _, rows = localize_in_map(
        mapped, world / "queries", world / "two", queries=world / "list.txt", match=exact(scene, [])
    )
    assert {name: row.camera for name, row in rows.items()} == {"a.png": "the list"}


def test_cameras_of_one_size_and_two_lenses_are_not_guessed_from(scene, world, found):
    model = pycolmap.Reconstruction(world / "sfm")
    model.camera(1).params = [900.0, 320, 240]
    model.write_binary(world / "sfm")
    _, rows = localize_in_map(open_map(world / "sfm"), world / "queries", world / "out", match=exact(scene, []))
    assert all("cameras of that size in the map differ" in row.reason for row in rows.values())
    assert found == []
    assert (world / "out" / "results.txt").read_text() == ""


def test_what_a_map_does_not_know_is_asked_for(world):
    (world / "photos").rename(world / "moved")
    with pytest.raises(ImageError, match="give --database-images"):
        open_map(world / "sfm")
    with pytest.raises(FormatError, match="nowhere holds no model"):
        open_map(world / "nowhere")
    assert open_map(world / "sfm", world / "moved").features == world / "f.h5"
    (world / "sfm" / "summary.json").unlink()
    with pytest.raises(FormatError, match=r"features of the map .* are not known: give --features"):
        open_map(world / "sfm", world / "moved")


def test_the_folder_of_a_run_is_a_map(world):
    shutil.move(world / "sfm", world / "run" / "sfm")
    shutil.move(world / "photos", world / "run" / "images")
    shutil.copy(world / "f.h5", world / "run" / "features.h5")
    mapped = open_map(world / "run")
    assert (mapped.model, mapped.images) == (world / "run" / "sfm", world / "run" / "images")


def test_the_command(scene, world, found, monkeypatch, capsys):
    monkeypatch.setattr("pdc_sfm.demo.queries.engine_matcher", lambda settings, masks: exact(scene, []))
    words = [
        "localize",
        "--map",
        str(world / "sfm"),
        "--images",
        str(world / "queries"),
        "--output",
        str(world / "out"),
    ]
    assert main([*words, "--top", "3", "match.batch=2", "pose.min_inliers=20"]) == 0
    said = capsys.readouterr().out
    assert f"2 of 2 queries localized -> {world / 'out' / 'results.txt'}" in said
    assert len(read_pairs(world / "out" / "retrieval.txt")) == 6
    assert (world / "out" / "log.txt").is_file()
    assert main([*words, "--matches", str(world / "m.h5")]) == 2
    assert "--matches do not go with --map" in capsys.readouterr().err
    assert main(["localize", "--output", str(world / "x"), "--model", str(world / "sfm")]) == 2
    assert "localize needs --queries, --retrieval, --features, --matches; or --map" in capsys.readouterr().err
