"""Sparsification in the report, on a plane in front of two cameras that stand side by side."""

import json

import numpy as np
import pytest
from run_maker import SIZE, ShiftMatcher

from pdc_sfm.matches.types import RawMatches
from pdc_sfm.report.gallery import ShownPair
from pdc_sfm.report.ground_truth import against_truth
from pdc_sfm.report.run_data import Missing, Run
from pdc_sfm.scenes import Camera
from pdc_sfm.scenes.layouts.plain import camera_to_dict

FOCAL, DEPTH, STEP = 200.0, 5.0, 0.2  # a point of the plane moves by 200 * 0.2 / 5 = 8 pixels to the left


@pytest.fixture
def run(tmp_path):
    cameras = {}
    for name, x in (("a.jpg", 0.0), ("b.jpg", STEP)):
        pose = np.c_[np.eye(3), [-x, 0, 0]]
        cameras[name] = camera_to_dict(Camera(*SIZE, FOCAL, pose))
        depth = np.full(SIZE[::-1], DEPTH, np.float32)
        (tmp_path / "depth").mkdir(exist_ok=True)
        np.savez(tmp_path / "depth" / name.replace(".jpg", ".npz"), depth=depth, moving=np.zeros(SIZE[::-1], bool))
    (tmp_path / "cameras.json").write_text(json.dumps(cameras))
    (tmp_path / "images").mkdir()
    return Run(tmp_path)


def shown(matcher):
    forward, backward = matcher.estimator.estimate_both(None, None)
    return [ShownPair(("a.jpg", "b.jpg"), "", RawMatches.empty(), forward, backward)]


def test_an_exact_flow_has_no_error(run):
    section = against_truth(run, shown(ShiftMatcher((-8.0, 0.0))))
    assert "<td class=n>0.00</td><td class=n>100.0</td><td class=n>100.0</td>" in section.content
    assert section.content.count("<svg") == 3  # two sparsification plots and the calibration


def test_an_error_of_three_pixels_is_seen(run):
    section = against_truth(run, shown(ShiftMatcher((-8.0, 3.0))))
    assert "<td class=n>3.00</td><td class=n>0.0</td><td class=n>100.0</td>" in section.content


def test_without_depth_there_is_nothing_to_say(run):
    with pytest.raises(Missing, match="dense maps"):
        against_truth(run, [])
    (run.folder / "cameras.json").unlink()
    with pytest.raises(Missing, match="no depth"):
        against_truth(run, shown(ShiftMatcher()))
