"""What can go wrong with an export is said in one line, and nothing is overwritten."""

import json
import shutil

import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.frame import MapFrame, read_frame, write_frame
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.export import export_map, find_format, format_names, register
from pdc_sfm.export import formats as known_formats

NAMES = ["0.png", "1.png", "2.png"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    scene = make_scene(NAMES)
    features, matches = write_features(scene, folder / "f.h5"), write_matches(scene, folder / "m.h5", scene.pairs())
    pairs, images = write_pairs(folder / "p.txt", scene.pairs()), write_images(scene, folder / "photos")
    settings = TriangulationSettings(refine_keypoints=False)
    triangulate(write_model(scene, folder / "known"), images, pairs, features, matches, folder / "sfm", settings)
    return folder


@pytest.fixture
def world(made, tmp_path):
    """The same map, to be spoiled; it knows images that stay where they are."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    summary = json.loads((tmp_path / "sfm" / "summary.json").read_text())
    summary["inputs"]["images"] = str(tmp_path / "photos")
    (tmp_path / "sfm" / "summary.json").write_text(json.dumps(summary))
    return tmp_path


def refused(capsys, *words) -> str:
    assert main(["export", *map(str, words)]) == 2
    lines = capsys.readouterr().err.strip().split("\n")
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize("to", format_names())
def test_every_format_is_written_and_written_again(world, to, capsys):
    for _ in range(2):
        assert main(["export", "--map", str(world / "sfm"), "--to", to, "--output", str(world / "out")]) == 0
    assert f"-> {world / 'out'}" in capsys.readouterr().out
    record = json.loads((world / "out" / "export.json").read_text())
    assert record["format"] == to
    assert not [path for path in world.rglob("*.partial")]


def test_the_frame_of_a_map_goes_with_it(world):
    assert read_frame(export_map(world / "sfm", "ply", world / "out").output) is None
    frame = MapFrame((48.1, 11.5, 520.0), 0.01, "positions (EXIF)", 1.5)
    write_frame(world / "sfm", frame)
    assert read_frame(export_map(world / "sfm", "ply", world / "out").output) == frame


def test_a_format_that_is_none(world, capsys):
    line = refused(capsys, "--map", world / "sfm", "--to", "nerfstudo", "--output", world / "out")
    assert line == "pdc-sfm: there is no format nerfstudo: did you mean nerfstudio?"
    assert "choose from nerfstudio, splats" in refused(
        capsys, "--map", world / "sfm", "--to", "x", "--output", world / "out"
    )
    assert not (world / "out").exists()


def test_a_folder_without_a_model_or_with_several(world, capsys):
    assert "holds no COLMAP model" in refused(
        capsys, "--map", world / "photos", "--to", "ply", "--output", world / "out"
    )
    for number in "01":
        shutil.copytree(world / "known", world / "colmap" / "sparse" / number)
    line = refused(capsys, "--map", world / "colmap", "--to", "ply", "--output", world / "out")
    assert line.endswith(
        f"holds 2 models ({world}/colmap/sparse/0, {world}/colmap/sparse/1): give the folder of one of them"
    )
    shutil.rmtree(world / "colmap" / "sparse" / "1")
    assert export_map(world / "colmap", "ply", world / "out").said == "0 points, 3 cameras"


def test_a_model_without_poses(world, capsys):
    (world / "empty").mkdir()
    pycolmap.Reconstruction().write_binary(world / "empty")
    line = refused(capsys, "--map", world / "empty", "--to", "ply", "--output", world / "out")
    assert "no image with a pose" in line


def test_images_that_are_not_known_or_not_there(world, capsys):
    line = refused(capsys, "--map", world / "known", "--to", "splats", "--output", world / "out")
    assert line.endswith("are not known: give --images")
    (world / "photos" / "1.png").unlink()
    line = refused(capsys, "--map", world / "sfm", "--to", "splats", "--output", world / "out")
    assert "1 images of the map are not in" in line
    assert "(first: 1.png): give --images" in line
    assert export_map(world / "sfm", "database", world / "out").said  # which needs none


def test_an_output_that_is_an_input_or_holds_other_things(world, capsys):
    before = sorted(path for path in world.rglob("*") if path.is_file())
    for output in (world / "sfm", world / "photos", world / "photos" / "new", world):
        line = refused(capsys, "--map", world / "sfm", "--to", "nerfstudio", "--output", output)
        assert "choose" in line
    assert sorted(path for path in world.rglob("*") if path.is_file()) == before
    export_map(world / "sfm", "ply", world / "out")
    line = refused(capsys, "--map", world / "sfm", "--to", "nvm", "--output", world / "out")
    assert line == f"pdc-sfm: {world / 'out'} holds an export for ply: choose another output"


def test_a_database_that_is_missing(world, capsys):
    line = refused(capsys, "--map", world / "known", "--to", "database", "--output", world / "out")
    assert "has no database.db" in line
    assert not (world / "out").exists()


def test_names_that_a_format_cannot_hold(world, capsys):
    model = pycolmap.Reconstruction(world / "known")
    for image in model.images.values():
        image.name = f"a, {image.name}"
        shutil.copy(world / "photos" / image.name.removeprefix("a, "), world / "photos" / image.name)
    model.write_binary(world / "known")
    for to in ("nvm", "bundler", "kapture"):
        words = ("--map", world / "known", "--images", world / "photos", "--to", to, "--output", world / "out")
        assert "the image a, 0.png has one: rename it" in refused(capsys, *words)
    export_map(world / "known", "nerfstudio", world / "out", world / "photos")


def test_a_format_from_elsewhere(world, monkeypatch):
    monkeypatch.setattr(known_formats, "_registered", dict(known_formats._registered))

    @register("count")
    def write(export):
        (export.folder / "count.txt").write_text(str(len(export.image_ids())))
        return "counted"

    assert find_format("count").write is write
    assert export_map(world / "sfm", "count", world / "out").said == "counted"
    assert (world / "out" / "count.txt").read_text() == "3"
