"""Epipolar distances and pose errors of matches that are projections of the same points."""

import json
from pathlib import Path

import numpy as np
import pytest

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.known_cameras import neighbor_pairs, read_camera_file
from pdc_sfm.evaluation.datasets.pose_pair import PosePair, epipolar_distance, relative_pose
from pdc_sfm.evaluation.measures.match_scores import MatchScores
from pdc_sfm.evaluation.runs.pose_pairs import PosePairSettings, pose_errors, score_pose
from pdc_sfm.evaluation.runs.pose_report import summarize, text
from pdc_sfm.images import write_image
from pdc_sfm.matches.types import RawMatches

SIZE = (640, 480)
K = np.array([[600.0, 0, 320], [0, 600.0, 240], [0, 0, 1]])


def turned(degrees, center):
    a = np.radians(degrees)
    rotation = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
    return np.c_[rotation, -rotation @ np.asarray(center, float)]


POSE0, POSE1 = turned(0, (0, 0, 0)), turned(8, (1, 0, 0))
PAIR = PosePair("a b", Path("a"), Path("b"), K, K, relative_pose(POSE0, POSE1))


def project(pose, points):
    local = (points @ pose[:, :3].T + pose[:, 3]) @ K.T
    return local[:, :2] / local[:, 2:] - 0.5  # pixel indices


@pytest.fixture
def matches():
    points = np.random.default_rng(0).uniform((-2, -1.5, 4), (2, 1.5, 9), (300, 3))
    return RawMatches(project(POSE0, points), project(POSE1, points), np.ones(300))


def test_projections_of_one_point_lie_on_the_epipolar_line(matches):
    assert epipolar_distance(matches, PAIR).max() < 1e-3


def test_the_distance_is_that_in_pixels_of_the_second_image(matches):
    # cameras side by side at one height without rotation: epipolar lines are the rows
    pair = PosePair("a b", Path("a"), Path("b"), K, K, relative_pose(POSE0, turned(0, (1, 0, 0))))
    off = RawMatches([[100, 200], [300, 50]], [[80, 203], [310, 49.5]], [1, 1])
    assert epipolar_distance(off, pair) == pytest.approx([3, 0.5])


def test_right_matches_give_the_right_pose(matches):
    rotation, translation = pose_errors(PAIR, matches, [SIZE, SIZE], PosePairSettings())
    assert rotation < 0.05
    assert translation < 0.2


def test_too_few_matches_give_no_pose():
    assert pose_errors(PAIR, RawMatches.empty(), [SIZE, SIZE], PosePairSettings()) == (np.inf, np.inf)


def test_scores_and_table(matches):
    scores = MatchScores()
    row = score_pose(PAIR, matches, [SIZE, SIZE], scores, PosePairSettings())
    assert row["epipolar"] == 1
    score_pose(PAIR, RawMatches.empty(), [SIZE, SIZE], scores, PosePairSettings())
    summary = scores.summary()
    assert summary["epipolar"] == 0.5
    assert summary["pose_map_5"] == 0.5
    said = text({"groups": {"gap 1": {"ours": summary}}}, "title", [["PDC-Net+ (D)", *"123456"]])
    assert "gap 1" in said
    assert "published" in said
    assert summarize({})["pairs"] == []


def test_pairs_of_a_folder_with_cameras(tmp_path):
    cameras = {}
    for i in range(4):
        write_image(tmp_path / f"{i}.png", np.zeros((48, 64, 3), np.uint8))
        pose = turned(5 * i, (i, 0, 0))
        cameras[f"{i}.png"] = {
            "width": 64, "height": 48, "fx": 60, "fy": 60, "cx": 32, "cy": 24,
            "R_cam_from_world": pose[:, :3].tolist(), "t_cam_from_world": pose[:, 3].tolist(),
        }  # fmt: skip
    cameras["not there.png"] = cameras["0.png"]
    path = tmp_path / "cameras.json"
    path.write_text(json.dumps(cameras))
    pairs = neighbor_pairs(tmp_path, path, (1, 3))
    assert [(p.group, p.name) for p in pairs] == [
        ("gap 1", "0.png 1.png"),
        ("gap 1", "1.png 2.png"),
        ("gap 1", "2.png 3.png"),
        ("gap 3", "0.png 3.png"),
    ]
    # from camera 0, camera 3 stands at (3, 0, 0)
    inverse = -pairs[3].cam1_from_cam0[:, :3].T @ pairs[3].cam1_from_cam0[:, 3]
    assert inverse == pytest.approx([3, 0, 0], abs=1e-9)
    with pytest.raises(FormatError, match="a pair needs two"):
        neighbor_pairs(tmp_path / "elsewhere", path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "cannot read cameras"),
        ('{"a": {"fx": 1}}', "no 'cx' of an image"),
        ("[1]", "cannot read cameras"),
        ('{"a": {"fx":1,"fy":1,"cx":1,"cy":1,"R_cam_from_world":[1],"t_cam_from_world":[1]}}', r"R is \(1,\)"),
    ],
)
def test_a_bad_camera_file_says_what_it_takes(tmp_path, content, complaint):
    path = tmp_path / "cameras.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=complaint):
        read_camera_file(path)
