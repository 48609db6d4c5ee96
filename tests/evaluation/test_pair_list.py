"""Lists of pairs with what is known of them, and what is said of matches there."""

from pathlib import Path

import numpy as np
import pytest

from pdc_sfm.cli import main
from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.pair_list import ListedPair, read_pair_list
from pdc_sfm.evaluation.runs.listed_pairs import ListScores, evaluate_list, score, text
from pdc_sfm.evaluation.runs.pose_pairs import KnownCameraSettings
from pdc_sfm.images import write_image
from pdc_sfm.matches.types import RawMatches

SIZE = (200, 100)
POSE = "0 0 100 0 100 0 100 50 0 0 1 100 0 100 0 100 50 0 0 1 1 0 0 1 0 1 0 0 0 0 1 0 0 0 0 1"  # a step aside
SHIFT = "1 0 30 0 1 0 0 0 1"


@pytest.fixture
def folder(tmp_path):
    for name in ("a.png", "b.png"):
        write_image(tmp_path / "images" / name, np.full((100, 200, 3), 90, np.uint8))
    return tmp_path


def listed(folder: Path, *truths: str) -> list[ListedPair]:
    (folder / "list.txt").write_text("# images and truth\n\n" + "".join(f"a.png b.png {t}\n" for t in truths))
    return read_pair_list(folder / "list.txt", folder / "images")


def test_every_kind_of_truth_is_read(folder):
    (folder / "H1to2p").write_text(SHIFT)
    pairs = listed(folder, POSE, SHIFT, "H1to2p", "points 1 2 3 4 5 6 7 8", "none")
    assert [pair.kind for pair in pairs] == ["pose", "homography", "homography", "points", "none"]
    np.testing.assert_array_equal(pairs[1].homography, pairs[2].homography)
    np.testing.assert_array_equal(pairs[3].points, [[1, 2, 3, 4], [5, 6, 7, 8]])
    np.testing.assert_array_equal(pairs[0].pose.cam1_from_cam0[:, 3], [1, 0, 0])
    assert len(listed(folder, "points " + "1 2 3 4 " * 9)[0].points) == 9  # as many words as a pose has


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        ("", "line 3.*names no truth"),
        ("1 2 3 4 5", "line 3: 5 words"),
        ("points 1 2 3", "line 3: 3 numbers"),
        ("points", "line 3: 0 numbers"),
        ("points 1 2 x 4", "line 3"),
        ("points 1 2 inf 4", "finite"),
        ("1 0 0 0 1 0 0 0 0", "cannot be inverted"),
        ("H1to9p", "H1to9p"),
        ("1 " + POSE[2:], "turned first"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(folder, truth, said):
    with pytest.raises(FormatError, match=said):
        listed(folder, truth)


def test_images_that_are_not_there_and_empty_lists_are_named(folder):
    (folder / "list.txt").write_text("a.png c.png none\n")
    with pytest.raises(FormatError, match=r"line 1: there is no image .*c\.png"):
        read_pair_list(folder / "list.txt", folder / "images")
    with pytest.raises(FormatError, match="lists no pair"):
        listed(folder)


def test_errors_of_matches(folder):
    matches = RawMatches([[10, 20], [50, 20], [190, 20]], [[40, 20], [80, 60], [120, 20]], [0.55, 0.55, 0.55])
    pose, plane, hand, none = listed(folder, POSE, SHIFT, "points 12 20 42 20 150 90 20 20", "none")
    np.testing.assert_allclose(
        pose.errors(matches, SIZE), [0, 40, 0], atol=1e-4
    )  # a step aside: rows are epipolar lines
    np.testing.assert_allclose(plane.errors(matches, SIZE), [0, 40, np.inf])  # the last would lie outside
    # the first place has a match 2 px away, which lands 2 px from its counterpart; the second has none nearby
    np.testing.assert_allclose(hand.errors(matches, SIZE), [0, np.inf])
    assert np.isinf(none.errors(matches, SIZE)).all()


def test_only_matches_that_are_wrong_and_say_they_are_right_are_sure_of_it(folder):
    (plane,) = listed(folder, SHIFT)
    start = [[10, 20], [50, 20], [60, 20], [70, 20]]
    matches = RawMatches(start, [[40, 20], [80, 60], [90, 60], [100, 32]], [0.55, 0.55, 0.2, 0.55])
    scores = ListScores()
    figures = score(plane, matches, [SIZE, SIZE], scores, KnownCameraSettings())
    assert figures == {"matches": 4, "right": 0.25, "wrong": 0.5, "sure_wrong": 1}


class Shifter:
    """A matcher that says all moves 30 px to the right, for certain."""

    def encode(self, image, name):
        return image

    def match(self, first, second):
        x, y = (axis.ravel() for axis in np.meshgrid(np.arange(5, 165, 8), np.arange(5, 95, 8)))
        points = np.stack([x, y], -1).astype(np.float32)
        return RawMatches(points, points + np.array([30, 0]), np.full(len(x), 0.56))


def test_a_whole_list_is_judged_and_told_by_kind(folder):
    pairs = listed(folder, SHIFT, "1 0 -30 0 1 0 0 0 1", "none", POSE)
    result = evaluate_list(pairs, Shifter(), KnownCameraSettings(sift=True))
    kinds = result["kinds"]
    assert list(kinds) == ["pose", "homography", "none"]
    assert kinds["homography"]["ours"]["right"] == 0.5
    assert kinds["homography"]["ours"]["sure_wrong"] == 120  # all 240 of the second
    assert kinds["none"]["ours"]["sure_wrong"] == 240
    assert kinds["none"]["sift"]["matches"] == 0
    stated = {kind: found["calibration"][5] for kind, found in result["calibration"].items()}  # all say .56
    assert {kind: row["true"] for kind, row in stated.items()} == {"pose": 1, "homography": 0.5, "none": 0}
    assert result["calibration"]["none"]["calibration_error"] == pytest.approx(0.56)
    assert kinds["pose"]["ours"]["right"] == 1
    assert len(result["pairs"]) == 4
    shown = text(result, "list")
    assert shown.count("ours") == shown.count("sift") == 3


def test_the_command_says_what_is_wrong_with_a_list(folder, capsys):
    (folder / "list.txt").write_text("a.png b.png 1 2\n")
    words = ["--list", str(folder / "list.txt"), "--images", str(folder / "images"), "--output", str(folder / "out")]
    assert main(["evaluate", "pairs", *words]) == 2
    assert "line 1: 2 words" in capsys.readouterr().err
