"""`pdc-sfm retrieve`: the list, the counts beside it, and one line for what is wrong."""

import json
from dataclasses import replace

import pytest
import torch
from fake_matcher import write_images

from pdc_sfm.cli import main
from pdc_sfm.network import COMPACT, PDCNet
from pdc_sfm.store.pair_lists import read_retrieval
from pdc_sfm.weights import save_network

SMALL = replace(
    COMPACT,
    pyramid_channels=(8, 8, 8),
    decoder_channels=(4, 4, 4, 4, 4),
    refinement_channels=(4,),
    refinement_dilations=(1,),
    finest_channels=(),
    finest_radius=0,
    slice_channels=(4, 4, 4, 4),
    predictor_channels=(4, 4),
)


@pytest.fixture
def words(tmp_path):
    """The command for a real network of random weights, small images, and lists of both kinds."""
    torch.manual_seed(0)
    save_network(tmp_path / "weights.safetensors", PDCNet(SMALL))
    names = write_images(tmp_path / "images", 6)
    (tmp_path / "queries.txt").write_text(f"{names[0]} PINHOLE 64 48 50 50 32 24\n{names[1]}\n")
    files = ["--images", "images", "--queries", "queries.txt", "--database", "images/db", "--output", "pairs.txt"]
    files = [str(tmp_path / word) if not word.startswith("--") else word for word in files]
    files[5] = "db"
    return ["retrieve", *files, "--quiet", f"weights={tmp_path / 'weights.safetensors'}", "min_side=64", "threshold=0"]


@pytest.mark.parametrize("mode", ["mode=exhaustive", "mode=cascade"])
def test_the_list_and_its_counts(words, tmp_path, capsys, mode):
    assert main([*words, mode, "best=2", "candidates=4", "--top", "3"]) == 0
    listed = read_retrieval(tmp_path / "pairs.txt")
    assert {query: len(images) for query, images in listed.items()} == {"db/000.png": 3, "db/001.png": 3}
    record = json.loads((tmp_path / "pairs.json").read_text())
    assert [row[0] for row in record["queries"]["db/000.png"]] == listed["db/000.png"]
    assert "6 images for 2 of 2 queries" in capsys.readouterr().out


def test_what_is_wrong_is_said_in_a_line(words, tmp_path, capsys):
    for more, text in (
        (["--queries", "none.txt"], "none.txt is neither a list"),
        (["--top", "0"], "--top 0 must be at least 1"),
        (["threshold=0.9"], "threshold=0.9"),
        (["best=two"], "best=two"),
        ([f"weights={tmp_path / 'none.pth'}"], "none.pth"),
        (["--images", str(tmp_path / "none")], "not a folder"),
    ):
        assert main([*words, *more]) == 2
        message = capsys.readouterr().err
        assert text in message
        assert message.count("\n") == 1


def test_a_query_that_finds_nothing_says_so(words, tmp_path, capsys):
    (tmp_path / "images" / "db" / "001.png").write_bytes(b"broken")
    assert main([*words, "mode=exhaustive", "min_matches=99999"]) == 1
    message = capsys.readouterr().err
    assert "no confident match: db/000.png" in message
    assert "left out: " in message
    assert "001.png" in message
