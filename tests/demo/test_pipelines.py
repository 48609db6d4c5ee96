"""The scripts `pipelines/demo.py` and `pipelines/retrieve.py` run from start to end."""

import importlib.util
import types
from pathlib import Path

import pytest
from fake_network import FakeNetwork, gray_images
from projected_town import QUERIES, ExactMatcher, projected_scene

from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.scenes import SceneSettings
from pdc_sfm.store.pair_lists import read_retrieval

FOLDER = Path(__file__).resolve().parents[2] / "pipelines"


@pytest.fixture
def script(monkeypatch):
    """A script as a module; its retrieval uses a network that knows brightness alone."""

    def load(name):
        spec = importlib.util.spec_from_file_location(f"pipeline_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        small = RetrievalSettings(method="direct", min_side=64)

        def find(images, queries, database, output, top, settings=small):
            return retrieve(images, queries, database, output, top, settings, network=FakeNetwork())

        monkeypatch.setattr(module, "retrieve", find)
        return module

    return load


def test_demo(script, monkeypatch, tmp_path, capsys):
    module = script("demo")
    match = ExactMatcher(projected_scene(module, monkeypatch))

    def match_pairs(images, pairs, output, settings, features=None, features_ref=()):
        features = features or output / "features.h5"
        matches = features.with_name(f"{pairs.stem}-matches.h5")
        match(images, pairs, features, matches)
        return types.SimpleNamespace(features=features, matches=matches)

    monkeypatch.setattr(module, "match_pairs", match_pairs)
    module.run(tmp_path, SceneSettings(), MatchingSettings())
    printed = capsys.readouterr().out
    assert f"3 of {len(QUERIES)} queries localized" in printed
    assert "day: 100% within 0.25 m and 2 degrees" in printed
    assert "night: 50% within 0.25 m and 2 degrees" in printed


def test_retrieve(script, tmp_path, capsys):
    gray_images(tmp_path / "images", {"query/a.png": 100, "query/b.png": 255, "db/1.png": 90, "db/2.png": 101})
    files = (tmp_path / "images", Path("query"), Path("db"))
    script("retrieve").run(*files, 1, tmp_path / "pairs.txt", RetrievalSettings(method="direct", min_side=48))
    assert read_retrieval(tmp_path / "pairs.txt") == {"query/a.png": ["db/2.png"]}
    assert "no confident match: query/b.png" in capsys.readouterr().out
