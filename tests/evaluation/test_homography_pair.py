"""One pair with a homography: reading it, and the flow it says."""

import numpy as np
import pytest

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.homography_pair import homography_flow, load_pair, read_homography
from pdc_sfm.images import write_image

SHIFT = np.array([[1, 0, 3.0], [0, 1, -2], [0, 0, 1]])


def test_a_shift_is_a_constant_flow_seen_where_it_stays_inside():
    flow, seen = homography_flow(SHIFT, (10, 8), (10, 8))
    assert (flow[seen] == [3, -2]).all()
    assert seen.sum() == 7 * 6
    assert not seen[:2].any()
    assert not seen[:, 7:].any()


def test_the_sign_of_a_homography_means_nothing():
    for sign in (1, -1):
        flow, seen = homography_flow(sign * SHIFT, (10, 8), (10, 8))
        assert seen.sum() == 42


def test_nothing_behind_the_horizon_is_seen():
    # x' = x / (1 - x / 5): the columns beyond 5 are behind the camera (the center, at 5, must not be)
    matrix = np.array([[1, 0, 0], [0, 1, 0], [-1 / 6, 0, 1]])
    _, seen = homography_flow(matrix, (10, 8), (1000, 1000))
    assert seen[:, :6].any()
    assert not seen[:, 6:].any()


@pytest.mark.parametrize(("name", "content"), [("H.txt", "1 0 3\n0 1 -2\n0 0 1\n"), ("H_1_2", "1,0,3,0,1,-2,0,0,1")])
def test_text_files(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert (read_homography(tmp_path / name) == SHIFT).all()


def test_opencv_files(tmp_path):
    import cv2

    storage = cv2.FileStorage(str(tmp_path / "H.xml"), cv2.FILE_STORAGE_WRITE)
    storage.write("H13", SHIFT)
    storage.release()
    assert (read_homography(tmp_path / "H.xml") == SHIFT).all()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("H.txt", "1 2 3", "holds 3 numbers"),
        ("H.txt", "a b", "cannot read"),
        ("H.txt", "1 1 1 1 1 1 1 1 1", "cannot be inverted"),
        ("H.xml", "<no>", "H.xml"),
        ("none.txt", None, "cannot read"),
        ("none.xml", None, "no such file"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, complaint):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(FormatError, match=complaint):
        read_homography(tmp_path / name)


def test_a_homography_the_wrong_way_round_is_noticed(tmp_path):
    for name in ("a.png", "b.png"):
        write_image(tmp_path / name, np.zeros((20, 20, 3), np.uint8))
    (tmp_path / "H").write_text("1 0 100 0 1 0 0 0 1")
    with pytest.raises(FormatError, match="the other way round"):
        load_pair(tmp_path / "a.png", tmp_path / "b.png", tmp_path / "H")
