"""The scripts of `pipelines/` run from start to end; exact matches stand for the network's."""

import importlib.util
import types
from pathlib import Path

import pytest
from aachen_folder import DATABASE, DAY, NIGHT, exact_matcher, write_dataset
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs, write_queries

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.evaluation.measures.poses import localization_recall
from pdc_sfm.store.pair_lists import read_pairs

FOLDER = Path(__file__).resolve().parents[2] / "pipelines"
MAP = [f"{i}.png" for i in range(6)]
QUERIES = ["q0.png", "q1.png"]


def script(name):
    spec = importlib.util.spec_from_file_location(f"pipeline_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def scene(tmp_path):
    scene = make_scene([MAP[0], QUERIES[0], *MAP[1:5], QUERIES[1], MAP[5]])
    write_images(scene, tmp_path / "images", MAP)
    return scene


def fake_matching(scene, module, monkeypatch):
    """Replace the network: same arguments, exact matches."""

    def match_pairs(images, pairs, output, settings, features_ref=()):
        for path in features_ref:
            assert path.exists()
        output.mkdir(parents=True, exist_ok=True)
        features = write_features(scene, output / f"feats_{settings.output}.h5")
        matches = write_matches(scene, output / "m.h5", read_pairs(pairs))
        return types.SimpleNamespace(features=features, matches=matches)

    monkeypatch.setattr(module, "match_pairs", match_pairs)
    return module


def test_reconstruct_then_localize(scene, tmp_path, monkeypatch, capsys):
    fake_matching(scene, reconstruct := script("reconstruct"), monkeypatch)
    reconstruct.run(tmp_path / "images", tmp_path / "out", MatchingSettings(), ReconstructionSettings())
    assert load_model(tmp_path / "out" / "sfm").num_reg_images() == len(MAP)
    fake_matching(scene, localize := script("localize"), monkeypatch)
    retrieval = write_pairs(tmp_path / "r.txt", [(query, image) for query in QUERIES for image in MAP])
    queries = write_queries(scene, tmp_path / "q.txt", QUERIES)
    localize.run(tmp_path / "images", tmp_path / "out", queries, retrieval, tmp_path / "loc", MatchingSettings())
    assert "2 of 2 queries localized" in capsys.readouterr().out
    assert set(read_poses(tmp_path / "loc" / "results.txt")) == set(QUERIES)


def test_triangulate(scene, tmp_path, monkeypatch, capsys):
    module = fake_matching(scene, script("triangulate"), monkeypatch)
    module.run(
        tmp_path / "images", write_model(scene, tmp_path / "known", MAP), tmp_path / "out", 5, MatchingSettings()
    )
    assert "mean track length" in capsys.readouterr().out
    assert load_model(tmp_path / "out" / "sfm").num_points3D() > 100


def test_aachen_localize(tmp_path):
    scene, dataset = write_dataset(tmp_path / "data", "1.1")
    retrieval = write_pairs(tmp_path / "r.txt", [(query, image) for query in [*DAY, *NIGHT] for image in DATABASE])
    script("aachen_localize").run(dataset, retrieval, tmp_path / "out", exact_matcher(scene))
    true = {query.split("/")[-1]: scene.poses[query] for query in [*DAY, *NIGHT]}
    found = read_poses(tmp_path / "out" / "Aachen_v1_1_pdcnet_plus.txt")
    assert localization_recall(found, true, [(1e-3, 1e-2)]) == (1.0,)


def test_aachen_challenge(tmp_path):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    script("aachen_challenge").run(dataset, tmp_path / "out", exact_matcher(scene))
    true = {query.split("/")[-1]: scene.poses[query] for query in NIGHT}
    found = read_poses(tmp_path / "out" / "Aachen_eval_[pdcnet_plus].txt")
    assert localization_recall(found, true, [(1e-3, 1e-2)]) == (1.0,)
