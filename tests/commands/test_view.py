"""`pdc-sfm view` writes a picture anywhere, and says what its window needs."""

import sys

import numpy as np
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs

from pdc_sfm.cli import main
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.images import read_image


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    scene = make_scene([f"{i}.png" for i in range(4)])
    triangulate(
        write_model(scene, folder / "known"),
        write_images(scene, folder / "images"),
        write_pairs(folder / "p.txt", scene.pairs()),
        write_features(scene, folder / "f.h5"),
        write_matches(scene, folder / "m.h5", scene.pairs()),
        folder / "sfm",
    )
    return folder


def test_picture(model, tmp_path, capsys):
    assert main(["view", str(model / "sfm"), "--output", str(tmp_path / "c.png"), "--size", "320", "200"]) == 0
    image = read_image(tmp_path / "c.png").astype(int)
    assert image.shape == (200, 320, 3)
    red, blue = image[..., 0] - image[..., 2] > 60, image[..., 2] - image[..., 0] > 60
    assert red.sum() > 50  # the images are red on the left and blue on the right
    assert blue.sum() > 50
    assert np.nonzero(red)[1].mean() < np.nonzero(blue)[1].mean()
    assert "4 cameras" in capsys.readouterr().out


def test_window_says_how_to_install_what_it_needs(model, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "open3d", None)
    assert main(["view", str(model / "sfm")]) == 2
    error = capsys.readouterr().err
    for hint in ("pip install 'pdc-sfm[viewer]'", "libusb-1.0-0", "libgl1", "--output"):
        assert hint in error


def test_a_model_without_points_or_no_model_is_said(model, capsys):
    assert main(["view", str(model / "known")]) == 2
    assert "has no points" in capsys.readouterr().err
    assert main(["view", str(model / "images")]) == 2
    assert "holds no COLMAP model" in capsys.readouterr().err
