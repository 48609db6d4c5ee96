"""`pdc-sfm evaluate` as a user runs it."""

import json
from dataclasses import replace

import pytest
import torch
from photo_fakes import waves

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
