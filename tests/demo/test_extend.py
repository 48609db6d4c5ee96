"""`pdc-sfm extend`: photographs added to a map, whose own images are neither matched nor moved."""

import json
import shutil

import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.frame import MapFrame, read_frame, write_frame
from pdc_sfm.colmap.io.models import load_model, model_poses
from pdc_sfm.colmap.mapping.extension import back_to_frame
from pdc_sfm.demo import PhotographSettings, run_photographs
from pdc_sfm.demo.extension import ExtendSettings, extend_map
from pdc_sfm.demo.queries import open_map
from pdc_sfm.errors import ImageError, OutputError
from pdc_sfm.evaluation.measures.poses import pose_error, reconstruction_errors
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import read_pairs
from pdc_sfm.store.readers import open_features

NAMES = [f"{k}.png" for k in range(8)]
OLD, NEW = [NAMES[k] for k in (0, 1, 2, 4, 6, 7)], [NAMES[3], NAMES[5]]
CAMERA = ["reconstruction.camera.model=PINHOLE", "reconstruction.camera.params=500,500,320,240"]
CAMERA += ["reconstruction.camera.mode=single", "reconstruction.camera.refine=false", "report=false"]
QUIET = ExtendSettings(report=False)


def matcher(scene, calls):
    """The scene's own points; keypoints that are in the feature file stay."""

    def match(images, pairs, features, matches, fixed=None):
        listed = read_pairs(pairs)
        calls.append(listed)
        assert all((images / name).is_file() for pair in listed for name in pair)
        write_features(scene, features, sorted({name for pair in listed for name in pair}))
        write_matches(scene, matches, listed)

    return match


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extend")
    scene = make_scene(NAMES, points=500, model="PINHOLE", params=(500, 500, 320, 240), vary=0)
    write_images(scene, folder / "photos", OLD)
    write_images(scene, folder / "new", NEW)
    settings = load_settings(PhotographSettings, None, CAMERA)
    run_photographs(folder / "photos", folder / "map", settings, match=matcher(scene, []))
    return scene, folder


@pytest.fixture
def world(made, tmp_path):
    scene, folder = made
    for name in ("new", "map"):
        shutil.copytree(folder / name, tmp_path / name, symlinks=True)
    return scene, tmp_path


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("adjust", [False, True])
def test_added_photographs_stand_where_they_were_taken(world, adjust):
    scene, folder = world
    write_frame(folder / "map" / "sfm", MapFrame((48.1, 11.5, 520.0), 0.01, "positions", 1.0))
    before, calls = content(folder / "map"), []
    settings = load_settings(ExtendSettings, None, ["report=false", f"extension.adjust={str(adjust).lower()}"])
    extend_map(open_map(folder / "map"), folder / "new", folder / "more", settings, match=matcher(scene, calls))
    assert all(set(pair) & set(NEW) for pair in calls[0])  # old pairs are not matched again
    assert len(calls[0]) == 2 * 6 + 1
    old, now = (model_poses(load_model(folder / name / "sfm")) for name in ("map", "more"))
    assert set(now) == set(NAMES)
    drift = max(np.abs(now[name] - old[name]).max() for name in OLD)
    assert drift < (1e-3 if adjust else 1e-9)
    errors = reconstruction_errors(now, scene.poses)
    assert errors.degrees.max() < 5e-3
    assert errors.percents.max() < 0.05
    summary = json.loads((folder / "more" / "sfm" / "summary.json").read_text())
    assert summary["remarks"][0] == "2 of 2 images added to 6"
    assert summary["verdict"]["kind"] == "consistent"
    assert read_frame(folder / "more" / "sfm") == read_frame(folder / "map" / "sfm")
    model = load_model(folder / "more" / "sfm")
    assert len(model.cameras) == 1  # the map's own camera took them
    assert content(folder / "map") == before


def test_the_result_is_a_map_that_can_be_extended_and_does_nothing_twice(world):
    scene, folder = world
    calls = []
    for name, new in (("one", NEW[0]), ("two", NEW[1])):
        (folder / f"{name}-photos").mkdir()
        shutil.copy(folder / "new" / new, folder / f"{name}-photos")
    first = open_map(folder / "map")
    extend_map(first, folder / "one-photos", folder / "one", QUIET, match=matcher(scene, calls))
    extend_map(open_map(folder / "one"), folder / "two-photos", folder / "two", QUIET, match=matcher(scene, calls))
    extend_map(open_map(folder / "one"), folder / "two-photos", folder / "two", QUIET, match=matcher(scene, calls))
    assert [len(listed) for listed in calls] == [6, 7]
    assert set(model_poses(load_model(folder / "two" / "sfm"))) == set(NAMES)
    mapped = open_map(folder / "two")
    with open_features(mapped.features) as file:
        assert set(NAMES) <= set(file.names())
    assert all((mapped.images / name).is_file() for name in NAMES)


def test_names_that_the_map_has_and_photographs_that_it_has(world, said):
    scene, folder = world
    (folder / "new" / NEW[0]).rename(folder / "new" / OLD[0])  # another picture of the same name
    for table in (scene.keypoints, scene.visible, scene.cameras, scene.poses):
        table["0_.png"] = table[NEW[0]]
    (folder / "new" / "again.png").symlink_to((folder / "map" / "images" / OLD[1]).resolve())
    extend_map(open_map(folder / "map"), folder / "new", folder / "more", QUIET, match=matcher(scene, []))
    assert set(model_poses(load_model(folder / "more" / "sfm"))) == {*OLD, "0_.png", NEW[1]}
    assert any("1 of 3 photographs are in the map already (first: again.png)" in line for line in said())
    for table in (scene.keypoints, scene.visible, scene.cameras, scene.poses):
        del table["0_.png"]


def test_what_is_refused(world):
    scene, folder = world
    mapped = open_map(folder / "map")
    with pytest.raises(OutputError):
        extend_map(mapped, folder / "new", folder / "map", QUIET, match=matcher(scene, []))
    (folder / "empty").mkdir()
    with pytest.raises(ImageError, match="holds no images to add"):
        extend_map(mapped, folder / "empty", folder / "more", QUIET, match=matcher(scene, []))
    (folder / "same").mkdir()
    (folder / "same" / "a.png").symlink_to((folder / "map" / "images" / OLD[1]).resolve())
    with pytest.raises(ImageError, match="no photograph to add: all are in the map already"):
        extend_map(mapped, folder / "same", folder / "more", QUIET, match=matcher(scene, []))
    assert not (folder / "more").exists()


def test_a_photograph_of_another_place_is_not_added_and_says_why(world):
    scene, folder = world
    other = make_scene(["x.png"], points=500, model="PINHOLE", params=(500, 500, 320, 240), vary=0, seed=9)
    write_images(other, folder / "new")
    for table, own in ((scene.keypoints, other.keypoints), (scene.cameras, other.cameras)):
        table["x.png"] = own["x.png"]
    scene.visible["x.png"] = other.visible["x.png"] + 10_000
    extend_map(open_map(folder / "map"), folder / "new", folder / "more", QUIET, match=matcher(scene, []))
    for table in (scene.keypoints, scene.cameras, scene.visible):
        del table["x.png"]
    remarks = json.loads((folder / "more" / "sfm" / "summary.json").read_text())["remarks"]
    assert remarks[0] == "2 of 3 images added to 6"
    assert "not registered, no partner: x.png" in remarks[1]


def test_the_command(world, monkeypatch, capsys):
    scene, folder = world
    monkeypatch.setattr("pdc_sfm.demo.extension.engine_matcher", lambda settings, masks: matcher(scene, []))
    words = ["extend", "--map", str(folder / "map"), "--images", str(folder / "new"), "--output", str(folder / "more")]
    assert main([*words, "--strict", "report=false"]) == 0
    assert "8/8" in capsys.readouterr().out
    assert main([*words[:-1], str(folder / "map"), "report=false"]) == 2
    assert len(capsys.readouterr().err.strip().split("\n")) == 1


def test_a_straight_street_comes_back_unturned():
    """Cameras on a line say nothing of a turn about it; adjusting had moved them by centimetres to its sides."""
    random = np.random.default_rng(0)
    old, now = (pycolmap.Reconstruction() for _ in range(2))
    for model, noise in ((old, 0.0), (now, 0.03)):
        camera = pycolmap.Camera(model="PINHOLE", width=640, height=480, params=[500, 500, 320, 240], camera_id=1)
        model.add_camera_with_trivial_rig(camera)
        for number in range(1, 21):
            center = np.array([5.0 * number, 0, 0]) + random.normal(0, noise, 3) if noise else [5.0 * number, 0, 0]
            pose = pycolmap.Rigid3d(pycolmap.Rotation3d(), -np.asarray(center, float))
            image = pycolmap.Image(name=f"{number}.jpg", camera_id=1, image_id=number)
            model.add_image_with_trivial_frame(image, pose)
    moved = pycolmap.Rotation3d(np.array([0.1, 0.2, 0.3]))  # what COLMAP's mapper does to a frame
    now.transform(pycolmap.Sim3d(0.5, moved, np.array([1.0, 2, 3])))
    back_to_frame(now, old)
    for number in range(1, 21):
        metres, degrees = pose_error(*(np.asarray(m.image(number).cam_from_world().matrix()) for m in (now, old)))
        assert metres < 0.2
        assert degrees < 1e-6
