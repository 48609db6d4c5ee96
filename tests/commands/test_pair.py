"""`pdc-sfm pair` as a user runs it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pdc_sfm.cli import main
from pdc_sfm.images import read_image, write_image
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
        (("a.png", "b b.jpg", "select.threshold=0.7"), "P_R lies between 0 and 0.573"),
        (("a.png", "b b.jpg", "dense.methd=direct"), "did you mean method?"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(folder, capsys, words, complaint):
    assert pair(folder, *words) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
