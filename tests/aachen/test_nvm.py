"""NVM files: against the official sample, whose other formats say the same, and against files built here."""

import numpy as np
import pytest

from pdc_sfm.aachen.nvm import read_nvm
from pdc_sfm.errors import FormatError

HEADER = "NVM_V3 \n\n2\n"
CAMERAS = "db/1.jpg 500 0.5 0.5 0.5 0.5 1 2 3 0.1 0\ndb/2.jpg 600 2 0 0 0 -1 0 0 0 0\n\n"
POINTS = "2\n1 2 3 255 0 0 2 0 7 10.5 20.5 1 9 1 2\n4 5 6 0 0 0 3 1 1 0 0 1 2 5 5 0 3 1 1\n\n0\n\nply stuff\n0\n"


@pytest.fixture
def nvm(tmp_path):
    def write(text):
        (tmp_path / "model.nvm").write_text(text)
        return tmp_path / "model.nvm"

    return write


def test_the_center_becomes_a_translation(nvm):
    (model,) = read_nvm(nvm(HEADER + CAMERAS + POINTS))
    assert model.names == ("db/1.jpg", "db/2.jpg")
    # (.5 .5 .5 .5) turns by 120 degrees about (1, 1, 1): x -> y -> z -> x
    turn = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    first, second = model.poses()
    np.testing.assert_allclose(first, np.c_[turn, -turn @ (1, 2, 3)], atol=1e-12)
    np.testing.assert_allclose(second, np.c_[np.eye(3), (1, 0, 0)], atol=1e-12)  # a quaternion of length 2 is the same


def test_observations_are_read_or_skipped(nvm):
    path = nvm(HEADER + CAMERAS + POINTS)
    (model,) = read_nvm(path)
    np.testing.assert_array_equal(model.points, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(model.observed_image, [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(model.observed_point, [0, 0, 1, 1, 1])
    assert len(read_nvm(path, points=False)[0].points) == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HEADER + "db/1.jpg 500 0.5 0.5 0.5 0.5 1 2 3 0.1 0\n", 5),
        (HEADER + CAMERAS.replace("0.5 0.5", "0.5 x"), 4),
        (HEADER + CAMERAS + "two\n", 7),
        (HEADER + CAMERAS + "1\n1 2 3 0 0 0 1 7 0 0 0\n", 8),
        (HEADER + CAMERAS + POINTS.replace("2\n1 2", "9\n1 2"), 11),
    ],
)
def test_a_broken_file_is_named_with_its_line(nvm, text, line):
    with pytest.raises(FormatError, match=rf"model\.nvm line {line} is not"):
        read_nvm(nvm(text))


def test_another_format_is_refused(nvm):
    with pytest.raises(FormatError, match="is not an NVM_V3 file"):
        read_nvm(nvm("# Bundle file v0.3\n"))
    with pytest.raises(FormatError, match="cannot read"):
        read_nvm("no.nvm")


@pytest.fixture
def sample(shared):
    return shared / "data" / "aachen" / "official_sample" / "3D-models"


def test_official_sample_agrees_with_its_bundler_file(sample):
    (model,) = read_nvm(sample / "aachen_cvpr2018_db.nvm")
    names = (sample / "aachen_cvpr2018_db.list.txt").read_text().split()
    assert list(model.names) == names == ["db/1045.jpg", "db/4446.jpg", "db/1135.jpg"]
    lines = (sample / "aachen_cvpr2018_db.out").read_text().splitlines()[1:]
    assert lines[0].split() == ["3", str(len(model.points))]
    flip = np.diag([1, -1, -1])  # Bundler's cameras and world look the other way
    for row, pose in enumerate(model.poses()):
        numbers = np.array([line.split() for line in lines[2 + 5 * row : 6 + 5 * row]], float)
        np.testing.assert_allclose(pose[:, :3], flip @ numbers[:3] @ flip, atol=2e-6)
        np.testing.assert_allclose(pose[:, 3], flip @ numbers[3], atol=2e-3)


def test_official_sample_of_two_models_gives_both(sample):
    first, second = read_nvm(sample / "aachen_two_parts.nvm")
    assert (first.names, second.names) == (("db/1045.jpg", "db/4446.jpg"), ("db/1135.jpg",))
    assert (len(first.points), len(second.points)) == (3, 2)
