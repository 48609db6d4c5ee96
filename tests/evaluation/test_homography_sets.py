"""Sets of photographs of planes: which files make a pair, in which pixels errors count, and the whole command."""

import json

import cv2
import numpy as np
import pytest

from pdc_sfm.cli import main
from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.homography_pair import load_pair
from pdc_sfm.evaluation.datasets.homography_sets import find_sets
from pdc_sfm.images import write_image

TURN = np.vstack((cv2.getRotationMatrix2D((80, 60), 8, 1.1), [0, 0, 1]))


def wall(size=(160, 120)):
    rng = np.random.default_rng(2)
    layers = [cv2.resize(rng.normal(0, 1, (n, n, 3)), size, interpolation=cv2.INTER_CUBIC) for n in (8, 24, 60)]
    return np.clip(127 + 35 * sum(layers), 0, 255).astype(np.uint8)


def write_set(folder, image="img{}.ppm", homography="H1to{}p", numbers=(2,)):
    folder.mkdir(parents=True)
    write_image(folder / image.format(1), wall())
    for number in numbers:
        write_image(folder / image.format(number), cv2.warpPerspective(wall(), TURN, (160, 120)))
        (folder / homography.format(number)).write_text("\n".join(" ".join(map(str, row)) for row in TURN))


def test_sets_of_both_layouts_are_found(tmp_path):
    write_set(tmp_path / "graf", numbers=(2, 3))
    write_set(tmp_path / "v_wall", "{}.ppm", "H_1_{}")
    (tmp_path / "other").mkdir()
    sets = find_sets(tmp_path)
    assert list(sets) == ["graf", "v_wall"]
    assert [(p.reference.name, p.query.name, p.homography.name) for p in sets["graf"]] == [
        ("img1.ppm", "img2.ppm", "H1to2p"),
        ("img1.ppm", "img3.ppm", "H1to3p"),
    ]
    assert list(find_sets(tmp_path / "graf")) == ["graf"]
    assert list(find_sets(tmp_path, ["v_wall"])) == ["v_wall"]


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(FormatError, match="holds no set of images with homographies"):
        find_sets(tmp_path / "nowhere")
    write_set(tmp_path / "graf")
    with pytest.raises(FormatError, match="no set boat: it has graf"):
        find_sets(tmp_path, ["boat"])
    (tmp_path / "graf" / "H1to4p").write_text("1 0 0 0 1 0 0 0 1")
    with pytest.raises(FormatError, match="homography of image 4, but no img4 or 4"):
        find_sets(tmp_path)


def test_truth_is_resized_with_the_images(tmp_path):
    write_set(tmp_path / "a")
    files = [tmp_path / "a" / name for name in ("img1.ppm", "img2.ppm", "H1to2p")]
    whole, half = load_pair(*files), load_pair(*files, min_side=60)
    assert half.reference.shape == (60, 80, 3)
    assert half.flow.shape == (60, 80, 2)
    mean = whole.flow.reshape(60, 2, 80, 2, 2).mean((1, 3))
    inner = whole.visible.reshape(60, 2, 80, 2).all((1, 3)) & half.visible
    assert inner.mean() > 0.7
    np.testing.assert_allclose(half.flow[inner], mean[inner] / 2, atol=1e-3)


def test_the_command_judges_every_set_or_each_pair(tmp_path, capsys):
    write_set(tmp_path / "planes" / "graf", numbers=(2, 3))
    words = ["evaluate", "homography-sets", "--images", str(tmp_path / "planes"), "--output", str(tmp_path / "out")]
    assert main([*words, "dense.min_side=120"]) == 0
    result = json.loads((tmp_path / "out" / "results.json").read_text())
    assert list(result["dense"]) == ["graf"]
    assert result["dense"]["graf"]["pairs"] == 2
    assert result["dense"]["graf"]["pck_5"] > 0.9
    assert main([*words, "--each", "dense.min_side=120"]) == 0
    assert "graf 1-3" in capsys.readouterr().out


def test_bad_input_is_one_line(tmp_path, capsys):
    assert main(["evaluate", "homography-sets", "--images", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
