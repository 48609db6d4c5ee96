"""`pdc-sfm view` opens a page without a network in the browser, or writes a picture."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

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


@pytest.fixture
def opened(monkeypatch):
    """What a browser was asked to open."""
    pages = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(pages.append(address)) or True)
    return pages


def test_a_browser_opens_one_file_that_loads_nothing(model, opened, capsys):
    assert main(["view", str(model / "sfm")]) == 0
    (address,) = opened
    page = Path(unquote(urlparse(address).path))
    assert address.startswith("file://")
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.partition('id="model-data">')[2].partition("</script>")[0])
    assert data["cameras"][0]["names"] == [f"{i}.png" for i in range(4)]
    assert "Plotly" in text  # the script itself
    assert not re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(?:https?:)?//', text)
    assert f"4 cameras -> {page}" in capsys.readouterr().out


def test_a_page_is_kept_with_queries_in_it(model, opened, tmp_path):
    pose = "new.jpg 1 0 0 0 0.5 0 0\n"
    (tmp_path / "results.txt").write_text(pose)
    words = ["--page", str(tmp_path / "v.html"), "--queries", str(tmp_path / "results.txt")]
    assert main(["view", str(model / "sfm"), *words]) == 0
    assert opened == []
    text = (tmp_path / "v.html").read_text(encoding="utf-8")
    data = json.loads(text.partition('id="model-data">')[2].partition("</script>")[0])
    assert data["cameras"][1]["names"] == ["new.jpg"]
    assert main(["view", str(model / "sfm"), "--page", str(model / "sfm" / "images.bin")]) == 2  # an input


def test_where_there_is_no_browser_the_file_is_named(model, monkeypatch, capsys):
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert main(["view", str(model / "sfm")]) == 0
    assert "open that file in one" in capsys.readouterr().out


def test_a_model_without_points_or_no_model_is_said(model, capsys):
    assert main(["view", str(model / "known")]) == 2
    assert "cannot be looked at: the model has 0 points" in capsys.readouterr().err
    assert main(["view", str(model / "images")]) == 2
    assert "holds no COLMAP model" in capsys.readouterr().err
