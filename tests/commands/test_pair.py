"""`pdc-sfm pair` as a user runs it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pdc_sfm.cli import main
from pdc_sfm.commands.pair import agreement
from pdc_sfm.images import read_image, write_image
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.network import COMPACT, PDCNet
from pdc_sfm.weights import save_network


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two images and the weights of a small untrained network."""
    folder = tmp_path_factory.mktemp("pair")
    torch.manual_seed(0)
    narrow = {name: (16,) * 5 for name in ("decoder_channels", "refinement_channels")}
    network = PDCNet(replace(COMPACT, pyramid_channels=(16,) * 3, slice_channels=(8,) * 4, **narrow))
    save_network(folder / "tiny.safetensors", network)
    for name, size in (("a.png", (160, 200, 3)), ("b b.jpg", (120, 180, 3))):
        write_image(folder / name, np.random.default_rng(0).integers(0, 255, size, np.uint8))
    return folder


def pair(folder, first="a.png", second="b b.jpg", *words):
    paths = [str(folder / first), str(folder / second), "--output", str(folder / "out.png")]
    return main(["pair", *paths, "--weights", str(folder / "tiny.safetensors"), *words])


def test_it_writes_a_picture_and_says_how_many_matches(folder, capsys):
    assert pair(folder, "a.png", "b b.jpg", "dense.min_side=128", "select.threshold=0.01") == 0
    said = capsys.readouterr().out
    assert "matches by direct" in said
    picture = read_image(folder / "out.png")
    assert picture.shape[1] == 3 * 200 + 4 * 4  # flow, confidence and warped image at the reference's size, and gaps


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("none.png", "b b.jpg"), "cannot read image"),
        (("a.png", "tiny.safetensors"), "is not a readable image"),
        (("a.png", "b b.jpg", "select.threshold=1.2"), "threshold=1.2 must be a probability"),
        (("a.png", "b b.jpg", "dense.methd=direct"), "did you mean method?"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(folder, capsys, words, complaint):
    assert pair(folder, *words) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def test_it_says_how_many_matches_one_epipolar_geometry_explains():
    """800 points in space seen by two cameras, and 200 matches that lie anywhere."""
    rng = np.random.default_rng(0)
    points = np.c_[rng.uniform(-2, 2, (800, 2)), rng.uniform(3, 9, 800)]
    seen = [800 * (p[:, :2] / p[:, 2:]) + 320 for p in (points, points + np.array([0.7, 0.1, 0.3]))]
    anywhere = rng.uniform(0, 640, (2, 200, 2))
    places = [np.concatenate(two).astype(np.float32) for two in zip(seen, anywhere)]
    said = agreement(RawMatches(*places, np.ones(1000, np.float32)))
    share = float(said.split()[1])
    assert said == f", {share:.1f} % within 2 px of one epipolar geometry"
    assert 80 <= share < 83


def test_of_a_few_matches_nothing_is_said():
    places = np.random.default_rng(0).uniform(0, 640, (2, 8, 2)).astype(np.float32)
    assert agreement(RawMatches(*places, np.ones(8, np.float32))) == ""
