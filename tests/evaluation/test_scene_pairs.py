"""The scene as a benchmark, on a plane seen by cameras that step aside: every flow is known by hand."""

import json

import numpy as np
import pytest
from shift_matcher import MovedMatcher, picture

from pdc_sfm.cli import main
from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.runs.scene_pairs import SceneEvaluationSettings, evaluate_scene, scene_pairs, summarize, text
from pdc_sfm.images import write_image
from pdc_sfm.scenes import Camera, SceneTruth
from pdc_sfm.scenes.layouts.plain import camera_to_dict

SIZE, FOCAL, DEPTH = (160, 120), 100.0, 5.0  # a step of 0.4 moves the picture by 100 * 0.4 / 5 = 8 pixels
PLACES = {"db/0.png": 0.0, "db/1.png": 0.4, "db/2.png": 0.8, "db/3.png": 20.0, "day/0.png": 0.4, "night/0.png": 0.4}


@pytest.fixture
def scene(tmp_path):
    cameras = {}
    for number, (name, x) in enumerate(PLACES.items()):
        cameras[name] = camera_to_dict(Camera(*SIZE, FOCAL, np.c_[np.eye(3), [-x, 0, 0]]))
        write_image(tmp_path / "images" / name, picture(SIZE, 20 + 10 * number))
        moving = np.zeros(SIZE[::-1], bool)
        if name == "night/0.png":
            moving[:60] = True  # somebody walks through the upper half
        path = (tmp_path / "depth" / name).with_suffix(".npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, depth=np.full(SIZE[::-1], DEPTH, np.float32), moving=moving)
    (tmp_path / "cameras.json").write_text(json.dumps(cameras))
    return SceneTruth(tmp_path)


def test_flow_and_visibility(scene):
    flow, visible = scene.flow("db/0.png", "db/1.png")
    assert np.allclose(flow, (-8, 0), atol=1e-4)
    assert visible.sum() == 152 * 120
    assert scene.overlap("db/0.png", "db/1.png") == pytest.approx(0.95, abs=0.08)  # on a coarse grid
    assert scene.overlap("db/0.png", "db/3.png") == 0


def test_nothing_that_moves_in_either_image_is_compared(scene):
    for pair in (("night/0.png", "db/1.png"), ("db/1.png", "night/0.png")):
        _, visible = scene.flow(*pair)
        assert not visible[:60].any()
        assert visible[61:].all()


def test_pairs_overlap_and_queries_come_with_their_best_images(scene):
    pairs = scene_pairs(scene, SceneEvaluationSettings(database=5, partners=1))
    assert ("database", "db/0.png", "db/1.png") in pairs
    assert ("day", "day/0.png", "db/1.png") in pairs
    assert ("night", "night/0.png", "db/1.png") in pairs
    assert not any("db/3.png" in pair for pair in pairs)


def test_an_exact_matcher_gets_full_marks_and_the_right_epipolar_lines(scene):
    settings = SceneEvaluationSettings(database=5)
    pairs = [("database", "db/0.png", "db/1.png"), ("night", "db/2.png", "night/0.png")]
    summary = summarize(evaluate_scene(scene, pairs, MovedMatcher((-8, 0)), settings))
    assert summary["database"]["dense"]["pck_1"] == 1
    assert summary["database"]["ours"]["within_1"] > 0.9  # some cells lie half a pixel beyond the visible ones
    assert summary["database"]["ours"]["epipolar"] == 1
    assert summary["night"]["dense"]["aepe"] == pytest.approx(16, abs=1e-3)  # the picture moves the other way
    assert "night" in text(summary)


def test_the_command_prints_both_rows_and_writes_figures_and_plots(scene, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pdc_sfm.matcher.load_matcher", lambda *_: MovedMatcher((-8, 0)))
    output = tmp_path / "out"
    assert main(["evaluate", "scene", "--scene", str(scene.folder), "--output", str(output), "partners=1"]) == 0
    printed = capsys.readouterr().out
    assert len([line for line in printed.splitlines() if line.split()[:2] in (["day", "ours"], ["day", "sift"])]) == 2
    assert (output / "results.txt").read_text() in printed
    assert {path.name for path in output.iterdir()} == {
        "results.json", "results.txt", "sparsification.png", "calibration.png",
    }  # fmt: skip
    assert set(json.loads((output / "results.json").read_text())["groups"]) == {"database", "day", "night"}


def test_a_scene_without_depth_says_how_to_get_it(tmp_path):
    (tmp_path / "cameras.json").write_text("{}")
    with pytest.raises(FormatError, match="depth=true"):
        SceneTruth(tmp_path)
