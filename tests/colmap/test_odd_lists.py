"""Lists of images with intrinsics and results files, whatever stands in them: read as written, or refused and named."""

import math

import numpy as np
import pycolmap
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_input import damaged_text, examples, lines_of, names, refused_or

from pdc_sfm.colmap.io.cameras import MODELS, camera_parameters, read_camera_list
from pdc_sfm.colmap.io.results import read_poses, write_poses
from pdc_sfm.errors import FormatError, UserError

QUERIES = "# queries\nq/1.jpg PINHOLE 640 480 500 510 320 240\n\nq/-2.jpg SIMPLE_RADIAL 640 480 500 320 240 -0.1\n"
RESULTS = "1.jpg 1 0 0 0 1 2 3\n2.jpg 0.5 0.5 0.5 0.5 -1 2e-3 0\n"
FINITE = st.floats(-1e6, 1e6)


def test_the_good_lists_are_read_in_full(tmp_path):
    for form in (QUERIES, QUERIES.replace("\n", "\r\n"), "\ufeff" + QUERIES):
        cameras = read_camera_list(lines_of(tmp_path / "q.txt", form))
        assert list(cameras) == ["q/1.jpg", "q/-2.jpg"]
        assert list(cameras["q/1.jpg"].params) == [500, 510, 320, 240]
    assert list(read_poses(lines_of(tmp_path / "r.txt", "\ufeff" + RESULTS))) == ["1.jpg", "2.jpg"]


@examples(40)
@given(names(), st.sampled_from(MODELS), st.integers(1, 10**5), st.integers(1, 10**5), st.data())
def test_intrinsics_are_read_as_written(tmp_path, name, model, width, height, data):
    count = len(camera_parameters(model))
    params = data.draw(st.lists(st.floats(1e-3, 1e6), min_size=count, max_size=count))
    words = [name, model, width, height, *params]
    path = lines_of(tmp_path / "q.txt", " ".join(map(str, words)) + "\n")
    cameras = refused_or(lambda: read_camera_list(path))
    if cameras is not None and name.split() == [name]:
        assert list(cameras) == [name.removeprefix("\ufeff")]
        (camera,) = cameras.values()
        assert (camera.model.name, camera.width, camera.height, list(camera.params)) == (model, width, height, params)


@examples(100)
@given(st.one_of(damaged_text(QUERIES), st.text(max_size=60)))
def test_a_list_with_junk_gives_cameras_that_can_be_or_is_refused(tmp_path, text):
    cameras = refused_or(lambda: read_camera_list(lines_of(tmp_path / "q.txt", text)))
    for camera in (cameras or {}).values():
        assert min(camera.width, camera.height) > 0
        assert np.isfinite(camera.params).all()
        assert camera.mean_focal_length() > 0


@pytest.mark.parametrize(
    "line",
    [
        "x PINHOLE 640 480 nan 1 1 1", "x PINHOLE 640 480 inf 1 1 1", "x PINHOLE 640 480 0 1 1 1", "x PINHOLE 640 480 1 -1 1 1",
        "x PINHOLE 0 480 1 1 1 1", f"x PINHOLE {10**30} 480 1 1 1 1", "x PINHOLE 6_40 480 1 1 1 1", "x PINHOLE 640 480 1_0 1 1 1",
        "../x PINHOLE 640 480 1 1 1 1", "q/1.jpg PINHOLE 640 480 500 510 320 241", "x PINHOLE", "x",
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_is_named_by_its_number(tmp_path, line):
    with pytest.raises(FormatError, match=r"q\.txt line 5: "):
        read_camera_list(lines_of(tmp_path / "q.txt", QUERIES + line + "\n"))


def test_an_image_listed_twice_with_the_same_intrinsics_is_no_contradiction(tmp_path):
    assert len(read_camera_list(lines_of(tmp_path / "q.txt", QUERIES + QUERIES))) == 2


@pytest.mark.parametrize("path", ["/", "..", "nowhere/*.txt", "[", "**"])
def test_a_path_that_is_no_list_is_an_error_for_the_user(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        read_camera_list(path)


@examples(100)
@given(st.dictionaries(names(), st.lists(FINITE, min_size=7, max_size=7), max_size=3))
def test_poses_are_read_as_written_or_refused(tmp_path, given_poses):
    poses = {}
    for name, numbers in given_poses.items():
        quaternion, translation = numbers[:4], numbers[4:]
        length = np.linalg.norm(quaternion)
        rotation = pycolmap.Rotation3d(np.array(quaternion) / length if length > 1e-3 else np.array([0, 0, 0, 1.0]))
        poses[name] = pycolmap.Rigid3d(rotation, np.array(translation))
    path = tmp_path / "r.txt"
    path.unlink(missing_ok=True)
    try:
        write_poses(path, poses)
    except UserError:
        assert not path.exists()
        return
    found = read_poses(path)
    assert list(found) == [name.split("/")[-1] for name in poses]
    for pose, expected in zip(found.values(), poses.values()):
        np.testing.assert_allclose(pose, expected.matrix(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["\ufeff", "\ufeffa.jpg", "q/\ufeffa.jpg"])
def test_a_name_that_would_be_taken_for_a_mark_of_the_encoding_is_refused(tmp_path, name):
    with pytest.raises(FormatError, match="cannot begin a line"):
        write_poses(tmp_path / "r.txt", {name: pycolmap.Rigid3d()})


@examples(100)
@given(st.one_of(damaged_text(RESULTS), st.text(max_size=60)))
def test_results_with_junk_are_poses_or_refused(tmp_path, text):
    for pose in (refused_or(lambda: read_poses(lines_of(tmp_path / "r.txt", text))) or {}).values():
        assert pose.shape == (3, 4)
        assert math.isclose(np.linalg.det(pose[:, :3]), 1, rel_tol=1e-6)
        assert np.isfinite(pose).all()


@pytest.mark.parametrize(
    "line", ["x 0 0 0 0 1 2 3", "x 1 0 0 0 1 2", "x 1 0 0 0 1 2 3 4", "x nan 0 0 0 1 2 3", "1.jpg 1 0 0 0 1 2 3"]
)
def test_a_line_without_a_pose_is_named_by_its_number(tmp_path, line):
    with pytest.raises(FormatError, match=r"r\.txt line 3: "):
        read_poses(lines_of(tmp_path / "r.txt", RESULTS + line))


def test_missing_results_are_an_error_for_the_user(tmp_path):
    with pytest.raises(FormatError, match="cannot read the results"):
        read_poses(tmp_path / "none.txt")
