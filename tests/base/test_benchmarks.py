"""Benchmarks run for anyone: as scripts of an installed package, and without data they say what is missing."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

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
