"""The benchmark of maps: a model is taken as it is only if the same weights, settings and files made it."""

import dataclasses
import shutil

import mapping
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_pairs

from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.settings import load_settings
from pdc_sfm.weights import built_in_path

CAMERA = ("camera.model=PINHOLE", "camera.params=500,500,320,240", "camera.mode=single", "refine_keypoints=false")
NAMES = [f"{i}.png" for i in range(4)]


@pytest.fixture
def scene(tmp_path):
    town = make_scene(NAMES, model="PINHOLE", params=(500, 500, 320, 240), vary=0)
    images = write_images(town, tmp_path / "town" / "images")
    write_pairs(tmp_path / "town" / "pairs.txt", town.pairs())
    write_features(town, tmp_path / "town" / "features.h5")
    write_matches(town, tmp_path / "town" / "matches.h5", town.pairs())
    settings = load_settings(ReconstructionSettings, None, list(CAMERA))
    return mapping.Scene("small town", "town", images, NAMES, settings, town.poses)


def test_a_model_is_made_once_and_again_when_what_made_it_changes(scene, tmp_path, monkeypatch):
    made, method = [], mapping.HlocFiles(tmp_path)
    reconstruct = method.reconstruct
    monkeypatch.setattr(method, "reconstruct", lambda *args: (made.append(args), reconstruct(*args)))
    first = mapping.mapping_row(scene, "files", method, tmp_path)
    assert "4/4" in first
    threads = dataclasses.replace(scene, settings=dataclasses.replace(scene.settings, threads=1))
    assert mapping.mapping_row(threads, "files", method, tmp_path) == first
    assert len(made) == 1
    surer = dataclasses.replace(scene, settings=dataclasses.replace(scene.settings, min_score=0.1))
    mapping.mapping_row(surer, "files", method, tmp_path)
    assert len(made) == 2
    write_pairs(tmp_path / "town" / "pairs.txt", [(a, b) for a in NAMES for b in NAMES if a > b][::-1])
    mapping.mapping_row(surer, "files", method, tmp_path)
    assert len(made) == 3


def test_our_models_know_their_weights_and_settings(scene, tmp_path):
    other = tmp_path / "other.safetensors"
    shutil.copy(built_in_path(), other)
    made_by = [
        mapping.Ours(load_settings(MatchingSettings, None, words), tmp_path).made_by(scene)
        for words in ([], ["readers=1", "memory=1GB"], [f"weights={other}"], ["select.threshold=0.2"])
    ]
    assert made_by[0] == made_by[1] == made_by[2] != made_by[3]
    other.write_bytes(other.read_bytes() + b"0")
    assert mapping.Ours(MatchingSettings(weights=str(other)), tmp_path).made_by(scene) != made_by[2]
