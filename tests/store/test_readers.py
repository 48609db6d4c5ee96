"""hloc files are read as hloc reads them."""

import h5py
import numpy as np
import pytest

from pdc_sfm.errors import FormatError
from pdc_sfm.store.readers import open_features, open_matches


@pytest.fixture
def match_file(tmp_path):
    def write(group, matches0, scores=None):
        path = tmp_path / "matches.h5"
        with h5py.File(path, "w") as file:
            file[f"{group}/matches0"] = np.array(matches0, np.int32)
            if scores is not None:
                file[f"{group}/matching_scores0"] = np.array(scores, np.float16)
        return path

    return write


@pytest.mark.parametrize("separator", ["/", "_"])
def test_matches_are_found_in_both_orders_and_under_the_old_name(match_file, separator):
    path = match_file(f"db-1.jpg{separator}q-2.jpg", [-1, 3, 0], [0, 0.5, 0.25])
    with open_matches(path) as file:
        assert ("db/1.jpg", "q/2.jpg") in file
        matches, scores = file.matches("db/1.jpg", "q/2.jpg")
        np.testing.assert_array_equal(matches, [[1, 3], [2, 0]])
        np.testing.assert_array_equal(scores, [0.5, 0.25])
        assert (matches.dtype, scores.dtype) == (np.int32, np.float32)
        np.testing.assert_array_equal(file.matches("q/2.jpg", "db/1.jpg")[0], [[3, 1], [0, 2]])


def test_a_pair_without_matches_is_empty_not_missing(match_file):
    with open_matches(match_file("a/b", [-1, -1])) as file:
        assert file.matches("a", "b")[0].shape == (0, 2)


def test_an_unfinished_pair_does_not_count(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["a/b/keypoints0"] = np.zeros((3, 2))
    with open_matches(tmp_path / "m.h5") as file:
        assert ("a", "b") not in file
        with pytest.raises(FormatError, match=r"m\.h5 has no matches of a b"):
            file.matches("a", "b")


def test_keypoints_come_with_uncertainty_and_size_where_recorded(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        data = file.create_dataset("db/1.jpg/keypoints", data=np.ones((4, 2), np.float16))
        data.attrs["uncertainty"] = 2.5
        file["db/1.jpg/image_size"] = np.array([640, 480])
        file["bare/keypoints"] = np.zeros((0, 2))
    with open_features(tmp_path / "f.h5") as file:
        found = file.keypoints("db/1.jpg")
        assert (found.points.dtype, found.uncertainty, found.image_size) == (np.float32, 2.5, (640, 480))
        assert file.keypoints("bare").uncertainty is None
        assert "db/2.jpg" not in file
        with pytest.raises(FormatError, match=r"no keypoints of db/2\.jpg"):
            file.keypoints("db/2.jpg")


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"no match file .*none\.h5"), open_matches(tmp_path / "none.h5"):
        pass
    (tmp_path / "text.h5").write_text("not h5")
    with pytest.raises(FormatError, match=r"text\.h5 is not a readable"), open_features(tmp_path / "text.h5"):
        pass
