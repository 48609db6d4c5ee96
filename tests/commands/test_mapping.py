"""`pdc-sfm reconstruct` and `pdc-sfm triangulate` as a user runs them."""

import json

import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.models import load_model

NAMES = [f"{i}.png" for i in range(5)]
CAMERA = ["camera.model=PINHOLE", "camera.params=500,500,320,240", "camera.mode=single", "camera.refine=false"]


@pytest.fixture
def folder(tmp_path):
    scene = make_scene(NAMES, model="PINHOLE", params=(500, 500, 320, 240), vary=0)
    write_images(scene, tmp_path / "images")
    write_pairs(tmp_path / "pairs.txt", scene.pairs())
    write_features(scene, tmp_path / "f.h5")
    write_matches(scene, tmp_path / "m.h5", scene.pairs())
    write_model(scene, tmp_path / "known")
    return tmp_path


def inputs(folder):
    names = dict(images="images", pairs="pairs.txt", features="f.h5", matches="m.h5", output="sfm")
    return [word for key, name in names.items() for word in (f"--{key}", str(folder / name))]


def test_reconstruct_prints_a_summary_and_records_its_settings(folder, capsys):
    assert main(["reconstruct", *inputs(folder), *CAMERA]) == 0
    assert "5 of 5 images registered" in capsys.readouterr().out
    record = json.loads((folder / "sfm" / "summary.json").read_text())
    assert record["settings"]["camera"]["params"] == [500, 500, 320, 240]
    assert record["model"]["points"] == load_model(folder / "sfm").num_points3D()


def test_triangulate_keeps_known_poses(folder, capsys):
    assert main(["triangulate", "--model", str(folder / "known"), *inputs(folder), "min_score=0.1"]) == 0
    assert "mean track length" in capsys.readouterr().out


def test_what_was_left_out_is_said_and_makes_the_exit_code_1(folder, capsys):
    with (folder / "pairs.txt").open("a") as file:
        file.write("0.png stranger.png\n")
    assert main(["triangulate", "--model", str(folder / "known"), *inputs(folder)]) == 1
    assert "left out: 1 image in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"--model": "images"}, "holds no COLMAP model"),
        ({"--features": "m.h5"}, "without keypoints"),
        ({"--matches": "none.h5"}, "there is no match file"),
        ({"--pairs": "none.txt"}, "cannot read the pair list"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(folder, capsys, broken, message):
    words = ["triangulate", "--model", str(folder / "known"), *inputs(folder)]
    for option, name in broken.items():
        words[words.index(option) + 1] = str(folder / name)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().splitlines()[-1].startswith("pdc-sfm: ")
    assert not (folder / "sfm").exists()
