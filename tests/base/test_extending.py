"""The examples of docs/extending.md run, one after the other, on photographs that are moved views of one picture."""

import shlex

import numpy as np
import pytest
from photo_fakes import waves
from readme_commands import ROOT, blocks

from pdc_sfm.cli import VERBS, main, make_parser
from pdc_sfm.dense import strategies
from pdc_sfm.files import write_text
from pdc_sfm.images import write_image
from pdc_sfm.store.readers import open_features, open_matches

BLOCKS = blocks((ROOT / "docs" / "extending.md").read_text(encoding="utf-8"))
PYTHON = ["\n".join(block.lines) for block in BLOCKS if block.language == "python"]
SHELL = [line for block in BLOCKS if not block.language for line in block.lines]
SHIFT = np.array([24, 8])


@pytest.fixture
def home(tmp_path, monkeypatch):
    picture = waves(3, (300, 400))
    write_image(tmp_path / "photos" / "a.png", picture[:256, :352])
    write_image(tmp_path / "photos" / "b.png", picture[8:264, 24:376])
    write_text(tmp_path / "pairs.txt", "a.png b.png\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(source: str) -> dict:
    names: dict = {"__name__": "example"}
    exec(compile(source, "extending.md", "exec"), names)
    return names


def test_there_is_an_example_of_each():
    assert len(PYTHON) == 4
    assert len(SHELL) == 4


def test_a_detector_of_ones_own(home):
    run(PYTHON[0])
    program, *words = shlex.split(SHELL[0])
    assert program == "pdc-sfm"
    assert main([*words, "dense.min_side=256"]) in (0, 1)  # waves are not what the network was made for
    with open_features("corners.h5") as given, open_features("outputs/feats_corners.h5") as written:
        for name in ("a.png", "b.png"):
            assert len(given.keypoints(name).points) > 20
            np.testing.assert_array_equal(given.keypoints(name).points, written.keypoints(name).points)
    with open_matches("outputs/corners_pairs.h5") as file:
        assert ("a.png", "b.png") in file


def test_a_backbone_of_ones_own(home):
    names = run(PYTHON[1])
    assert names["flow"].shape == (1, 2, 64, 80)


def test_a_strategy_of_ones_own(home, monkeypatch):
    monkeypatch.setattr(strategies, "_registered", dict(strategies._registered))
    matcher = run(PYTHON[2])["matcher"]
    images = [waves(3, (256, 320)), waves(3, (256, 320))[::-1].copy()]
    matches = matcher.match(*(matcher.encode(image) for image in images))
    assert len(matches.keypoints0) > 500
    mirrored = matches.keypoints0 * (1, -1) + (0, 255)
    assert np.median(np.abs(matches.keypoints1 - mirrored)) < 0.5


def test_a_matcher_of_ones_own(home):
    result = run(PYTHON[3])["result"]
    with open_matches(result.matches) as match_file, open_features(result.features) as feature_file:
        matches, _ = match_file.matches("a.png", "b.png")
        points = [feature_file.keypoints(name).points[matches[:, k]] for k, name in enumerate(("a.png", "b.png"))]
    assert len(matches) > 500
    np.testing.assert_allclose(np.median(points[0] - points[1], axis=0), SHIFT, atol=0.5)


def test_the_commands_of_training_are_understood():
    for line in SHELL[1:]:
        program, *words = shlex.split(line)
        assert program == "pdc-sfm"
        assert make_parser(list(VERBS)).parse_args(words).verb in VERBS
