"""`pdc-sfm evaluate` as a user runs it."""

import json
import re
from dataclasses import replace

import pytest
import torch
from photo_fakes import waves
from shift_matcher import MovedMatcher, picture

from pdc_sfm.cli import main
from pdc_sfm.images import write_image
from pdc_sfm.network import COMPACT, PDCNet
from pdc_sfm.weights import save_network


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three photographs and the weights of a small untrained network."""
    folder = tmp_path_factory.mktemp("evaluate")
    torch.manual_seed(0)
    narrow = {name: (16,) * 5 for name in ("decoder_channels", "refinement_channels")}
    network = PDCNet(replace(COMPACT, pyramid_channels=(16,) * 3, slice_channels=(8,) * 4, **narrow))
    save_network(folder / "tiny.safetensors", network)
    for i in range(3):
        write_image(folder / "photos" / f"{i}.png", waves(i))
    return folder


def test_homographies_prints_tables_and_writes_results(folder, capsys):
    words = ["--images", str(folder / "photos"), "--count", "1", "--weights", str(folder / "tiny.safetensors")]
    output = folder / "out"
    small = ["size=96,128", "dense.min_side=128", "kinds=viewpoint"]
    assert main(["evaluate", "homographies", *words, "--output", str(output), *small]) == 0
    said = capsys.readouterr().out
    assert "3 photographs" in said
    assert "PCK-5 there" in said
    stored = json.loads((output / "results.json").read_text())
    assert stored["dense"]["viewpoint"]["pairs"] == 1
    assert stored["weights"].endswith("tiny.safetensors")
    assert (output / "sparsification.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("images", "words", "complaint"),
    [
        ("none", [], "is not a folder"),
        ("empty", [], "no usable photograph"),
        ("photos", ["count=0"], "must be at least 1"),
        ("photos", ["kinds=up"], "choose from viewpoint"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(folder, capsys, images, words, complaint):
    (folder / "empty").mkdir(exist_ok=True)
    weights = str(folder / "tiny.safetensors")
    assert main(["evaluate", "homographies", "--images", str(folder / images), "--weights", weights, *words]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


@pytest.fixture
def moved(monkeypatch):
    """Commands get a matcher that says that images 2 ... are image 1 moved by (-6, 0)."""
    monkeypatch.setattr("pdc_sfm.matcher.load_matcher", lambda *_: MovedMatcher((-6, 0)))


def write_hpatches(folder):
    for k in range(1, 7):
        write_image(folder / "v_one" / f"{k}.ppm", picture((120, 80), 250 if k == 1 else 100))
        (folder / "v_one" / f"H_1_{k}").write_text("1 0 6\n0 1 0\n0 0 1\n")


def test_hpatches_prints_the_accuracy_at_each_threshold(tmp_path, capsys, moved):
    write_hpatches(tmp_path / "data")
    words = ["--data", str(tmp_path / "data"), "--output", str(tmp_path / "out"), "sift=false"]
    assert main(["evaluate", "hpatches", *words]) == 0
    assert re.search(r"viewpoint +ours +5 +100.0", capsys.readouterr().out)
    assert json.loads((tmp_path / "out" / "results.json").read_text())["ours"]["viewpoint"]["mma"] == [1] * 10
    assert (tmp_path / "out" / "mma.png").stat().st_size > 5000


def test_hpatches240_prints_the_papers_rows_as_published(tmp_path, capsys, moved):
    write_hpatches(tmp_path / "data")
    words = ["--data", str(tmp_path / "data"), "--output", str(tmp_path / "out"), "--limit", "1", "backward=false"]
    assert main(["evaluate", "hpatches240", *words]) == 0
    said = capsys.readouterr().out
    assert "PDC-Net+ (MS), published" in said
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert stored["measured"]["all"]["aepe"] == pytest.approx(6, abs=1e-3)  # 6 of 240 pixels are half of what is true
    assert stored["published"]["all"]["PDC-Net+ (H)"]["pck_1"] == 86.56


def test_yfcc_measures_poses_of_superglues_list(tmp_path, capsys, moved):
    for name, corner in (("1.png", 250), ("2.png", 100)):
        write_image(tmp_path / "data" / name, picture((120, 80), corner))
    numbers = "100 0 60 0 100 40 0 0 1"
    line = f"1.png 2.png 0 0 {numbers} {numbers} 1 0 0 1 0 1 0 0 0 0 1 0 0 0 0 1"
    (tmp_path / "pairs.txt").write_text(line)
    words = [
        "--data",
        str(tmp_path / "data"),
        "--pairs",
        str(tmp_path / "pairs.txt"),
        "--output",
        str(tmp_path / "out"),
    ]
    assert main(["evaluate", "yfcc", *words]) == 0
    said = capsys.readouterr().out
    assert "published" in said
    assert "37.51" in said
    (row,) = json.loads((tmp_path / "out" / "results.json").read_text())["pairs"]
    assert row["ours"]["epipolar"] == 1  # all move along the rows, as a camera that steps aside makes them
    assert main(["evaluate", "scannet", "--data", str(tmp_path / "data")]) == 2
    assert "needs --pairs" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "complaint"), [(["--limit", "0"], "at least 1"), ([], "holds no sequence")])
def test_a_dataset_that_is_not_there(tmp_path, capsys, words, complaint, moved):
    assert main(["evaluate", "hpatches", "--data", str(tmp_path), *words]) == 2
    assert complaint in capsys.readouterr().err
    assert main(["evaluate", "kitti", "--data", str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_homography_pair(tmp_path, capsys, folder):
    for name, corner in (("1.png", 250), ("2.png", 100)):
        write_image(tmp_path / name, picture((120, 80), corner))
    (tmp_path / "H.txt").write_text("1 0 6\n0 1 0\n0 0 1\n")
    files = [str(tmp_path / name) for name in ("1.png", "2.png", "H.txt")]
    words = ["--weights", str(folder / "tiny.safetensors"), "--output", str(tmp_path / "out"), "dense.min_side=80"]
    assert main(["evaluate", "homography-pair", *files, *words]) == 0
    assert "1.png 2.png" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "results.json").read_text())["dense"]["1.png 2.png"]["pixels"] == 114 * 80
