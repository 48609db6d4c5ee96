"""The plugin keeps hloc's contracts: signature, file names, matcher class. Real hloc is not needed."""

import inspect
import sys

import h5py
import numpy as np
import pytest
import torch
from fake_matcher import FakeMatcher, write_images, write_list

from pdc_sfm import hloc_plugin, matcher
from pdc_sfm.engine import run as engine
from pdc_sfm.errors import SettingsError
from pdc_sfm.settings import load_settings, preset_path

HLOC = {
    "hloc/__init__.py": "",
    "hloc/match_dense.py": "confs = {'loftr': {}}\n",
    "hloc/matchers/__init__.py": "",
    "hloc/utils/__init__.py": "",
    # as in hloc: a module with a configuration, checked inputs, and `_init` and `_forward` to be written
    "hloc/utils/base_model.py": (
        "from torch import nn\n"
        "class BaseModel(nn.Module):\n"
        "    default_conf, required_inputs = {}, []\n"
        "    def __init__(self, conf):\n"
        "        super().__init__()\n"
        "        self.conf = conf = {**self.default_conf, **conf}\n"
        "        self._init(conf)\n"
        "    def forward(self, data):\n"
        "        assert all(key in data for key in self.required_inputs)\n"
        "        return self._forward(data)\n"
    ),
}


@pytest.fixture
def photos(tmp_path, monkeypatch):
    names = write_images(tmp_path / "photos", 3)
    monkeypatch.setattr(engine, "_load", lambda settings: FakeMatcher())
    monkeypatch.setattr(engine, "_made_by", lambda settings, matcher, given: {})
    pairs = write_list(tmp_path / "pairs-db.txt", [(names[0], names[1]), (names[1], names[2])])
    return pairs, tmp_path / "photos", tmp_path / "out"


@pytest.fixture
def fake_hloc(tmp_path, monkeypatch):
    """A package with the parts of hloc that a matcher meets."""
    for name, text in HLOC.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "hloc"]:
        del sys.modules[name]


def test_main_has_the_signature_of_hloc():
    found = {p.name: p.default for p in inspect.signature(hloc_plugin.main).parameters.values()}
    empty = inspect.Parameter.empty
    assert list(found.items()) == [
        ("conf", empty), ("pairs", empty), ("image_dir", empty), ("export_dir", None), ("matches", None),
        ("features", None), ("features_ref", None), ("max_kps", 8192), ("overwrite", False),
    ]  # fmt: skip


def test_files_have_hlocs_default_names(photos):
    pairs, images, output = photos
    features, matches = hloc_plugin.main(hloc_plugin.confs["compact"], pairs, images, export_dir=output)
    assert (features, matches) == (
        output / "feats_matches-pdc_compact.h5",
        output / "matches-pdc_compact_pairs-db.h5",
    )
    with h5py.File(features) as file:
        assert file["db/000.png/keypoints"].dtype == np.float32


def test_queries_extend_the_map_by_hlocs_usual_call(photos):
    pairs, images, output = photos
    conf = hloc_plugin.confs["compact"]
    features, _ = hloc_plugin.main(conf, pairs, images, export_dir=output)
    write_images(images, 4)
    queries = write_list(pairs.with_name("loc.txt"), [("db/003.png", "db/000.png"), ("db/003.png", "db/001.png")])
    again, matches = hloc_plugin.main(conf, queries, images, export_dir=output, features_ref=features, max_kps=None)
    assert again == features
    with h5py.File(features) as file, h5py.File(matches) as matched:
        points, partners = file["db/003.png/keypoints"][()], matched["db-003.png/db-000.png/matches0"][()]
        shift = points[: len(partners)][partners >= 0] - file["db/000.png/keypoints"][()][partners[partners >= 0]]
    assert len(shift) > 5
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0].round(), shift.shape), atol=1e-3)  # nothing was rounded


def test_paths_come_both_or_not_at_all(photos):
    pairs, images, _ = photos
    with pytest.raises(SettingsError, match="export_dir"):
        hloc_plugin.main(hloc_plugin.confs["compact"], pairs, images)
    with pytest.raises(SettingsError, match="both features and matches"):
        hloc_plugin.main(hloc_plugin.confs["compact"], pairs, images, features=pairs.with_name("f.h5"))


@pytest.mark.parametrize(
    "name", ["pdcnet_plus", "pdcnet_plus_aachen", "pdcnet_plus_superpoint", "compact", "compact_aachen"]
)
def test_confs_are_valid_and_complete(name):
    conf = hloc_plugin.confs[name]
    assert conf.keys() == {"output", "model", "preprocessing", "max_error", "cell_size"}
    settings = hloc_plugin.settings_of(conf, None)
    assert (settings.tracks.max_error, settings.tracks.cell_size) == (conf["max_error"], conf["cell_size"])
    assert settings.tracks.max_keypoints is None


def test_a_conf_of_another_model_or_with_an_unknown_setting_is_refused():
    conf = hloc_plugin.confs["compact"]
    with pytest.raises(SettingsError, match="loftr"):
        hloc_plugin.settings_of({**conf, "model": {"name": "loftr"}})
    with pytest.raises(SettingsError, match=r"dense\.min_sid"):
        hloc_plugin.settings_of({**conf, "model": {"name": "pdcnet_plus", "dense": {"min_sid": 3}}})


def test_without_hloc_registering_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "hloc", None)
    with pytest.raises(SettingsError, match="optional companion"):
        hloc_plugin.register()


@pytest.mark.usefixtures("fake_hloc")
def test_hloc_finds_and_runs_the_registered_matcher(monkeypatch):
    monkeypatch.setattr(matcher, "load_matcher", lambda *arguments: FakeMatcher())
    assert {"loftr", "compact", "pdcnet_plus"} <= set(hloc_plugin.register())
    hloc_plugin.register()  # twice does no harm
    module = __import__("hloc.matchers.pdcnet_plus", fromlist=[""])  # as hloc's dynamic_load does
    classes = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__]
    assert len(classes) == 1
    model = classes[0](hloc_plugin.confs["compact"]["model"]).eval()
    found = model({"image0": torch.rand(1, 3, 48, 64), "image1": torch.rand(1, 1, 48, 64)})
    assert {key: tuple(value.shape) for key, value in found.items()} == {
        "keypoints0": (60, 2), "keypoints1": (60, 2), "scores": (60,)
    }  # fmt: skip


@pytest.mark.parametrize(("name", "preset"), [("aachen", "paper_aachen"), ("superpoint", "paper_superpoint")])
def test_the_papers_confs_are_the_papers_presets(name, preset):
    ours = hloc_plugin.settings_of(hloc_plugin.confs[f"pdcnet_plus_{name}"], None)
    paper = load_settings(engine.MatchingSettings, preset_path(preset))
    assert (ours.dense, ours.select, ours.snap) == (paper.dense, paper.select, paper.snap)
    assert ours.tracks.rule == paper.tracks.rule == "hloc"
