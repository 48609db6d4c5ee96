"""Benchmarks run for anyone: as scripts of an installed package, and without data they say what is missing."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import torch

from pdc_sfm.network import PDCNET_PLUS, PDCNet

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(FOLDER.glob("*.py"))
HELPERS = {path.stem for path in FOLDER.parents[0].glob("tests/*.py")}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_needs_neither_a_changed_path_nor_the_tests(path):
    text = path.read_text()
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.M))
    assert "sys.path" not in text
    assert not imported & (HELPERS | {"tests"})
    assert "../shared" not in text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path):
    try:
        importlib.import_module(path.stem)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"pdc_sfm", *(script.stem for script in SCRIPTS)}:
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("mapping", "--scenes"),
        ("adaptive", "--scenes"),
        ("match_time", "--images"),
        ("strategies", "--images"),
        ("training_pairs", "--photos"),
        ("disk_lightglue", "--scenes"),
        ("aachen_scene", "--dataset"),
        ("tracks", "--scene"),
        ("scale", "--list"),
        ("plane_truth", "--images"),
        ("alignment_constants", "--photos"),
        ("million", "--data"),
    ],
)
def test_absent_data_are_named(name, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [f"{name}.py", option, "nowhere"])
    with pytest.raises(SystemExit, match=r"^nowhere\S* is not here: datasets/README.md"):
        importlib.import_module(name).main()
    assert not list(tmp_path.iterdir())


def test_the_plain_scheme_gives_the_networks_numbers_by_plain_products(monkeypatch):
    torch.manual_seed(0)
    plain_scheme = importlib.import_module("plain_scheme")
    network = PDCNet(PDCNET_PLUS).eval()
    plain, calls, products = plain_scheme.PlainPDCNet.of(network), [], plain_scheme.shifted_products
    monkeypatch.setattr(plain_scheme, "shifted_products", lambda *args: calls.append(1) or products(*args))
    images = torch.rand(2, 1, 3, 64, 80)
    with torch.no_grad():
        mine = network.decode(*(network.encode(image) for image in images))[-1]
        encoding = len(calls)
        theirs = plain.decode(plain.encode(images[0]), plain.encode_without_filters(images[1]))[-1]
    torch.testing.assert_close(theirs.flow, mine.flow, atol=1e-2, rtol=1e-3)
    assert encoding == 0
    assert len(calls) > 2 * 3  # of levels 3 to 0 by features and by filters, beside those of the filters


def test_the_parts_of_a_network_are_timed():
    found = importlib.import_module("network").measure("compact", 64, 80, 1)
    assert {part.name for part in found.decode} >= {"warp and local correlation", "decoders", "decode, a direction"}
