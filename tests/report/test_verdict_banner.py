"""The report says first of all whether the map can be trusted."""

import json

import cv2
import numpy as np
import pytest

from pdc_sfm.report.overview import overview
from pdc_sfm.report.run_data import Run

DOUBT = {"kind": "doubtful", "reasons": ["pairs disagree on <b>"], "images": ["7.jpg"], "parts": []}
APART = {
    "kind": "falls apart",
    "reasons": ["little holds"],
    "images": ["7.jpg"],
    "parts": [["1.jpg", "2.jpg"], ["7.jpg"]],
}
FINE = {"kind": "consistent", "reasons": [], "images": [], "parts": []}


@pytest.mark.parametrize(
    ("verdict", "said", "unsaid"),
    [
        (DOUBT, ["This map is doubtful", "pairs disagree on &lt;b&gt;", "In doubt: 7.jpg"], ["Parts that hold"]),
        (APART, ["This map falls apart", "2 images: 1.jpg, 2.jpg", "1 images: 7.jpg"], ["doubtful"]),
        (FINE, ["consistent"], ["alarm", "doubt"]),
        (None, [], ["alarm", "doubt", "consistent"]),
    ],
)
def test_the_overview_begins_with_the_verdict(tmp_path, verdict, said, unsaid):
    (tmp_path / "sfm").mkdir()
    (tmp_path / "sfm" / "summary.json").write_text(
        json.dumps({"model": {}, **({"verdict": verdict} if verdict else {})})
    )
    content = overview(Run(tmp_path)).content
    assert all(words in content for words in said)
    assert not any(words in content for words in unsaid)


def test_pairs_in_doubt_are_shown_and_one_whose_image_is_gone_is_not(tmp_path):
    (tmp_path / "sfm").mkdir()
    (tmp_path / "images").mkdir()
    for name in ("1.png", "2.png"):
        cv2.imwrite(str(tmp_path / "images" / name), np.zeros((6, 8, 3), np.uint8))
    pairs = [["the map follows", "1.png", "2.png"], ["it contradicts", "1.png", "gone.png"]]
    (tmp_path / "sfm" / "summary.json").write_text(json.dumps({"model": {}, "verdict": {**DOUBT, "pairs": pairs}}))
    content = overview(Run(tmp_path)).content
    assert "<figcaption>the map follows: 1.png - 2.png</figcaption>" in content
    assert content.count("<img") == 1


def test_the_overview_says_why_images_are_not_in_the_map(tmp_path):
    (tmp_path / "sfm").mkdir()
    remarks = ["not registered, no partner: <7>.jpg; take photographs between"]
    (tmp_path / "sfm" / "summary.json").write_text(json.dumps({"model": {}, "verdict": FINE, "remarks": remarks}))
    content = overview(Run(tmp_path)).content
    assert "<li>Not registered, no partner: &lt;7&gt;.jpg; take photographs between</li>" in content
    assert "Not in the model" not in content
