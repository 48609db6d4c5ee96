"""Feature, match and depth files after an accident, and with odd names in them: read as written, or refused."""

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_input import damaged, examples, in_child, names

from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.store.depth import read_depth
from pdc_sfm.store.pair_lists import check_keys, check_name
from pdc_sfm.store.readers import open_features, open_matches
from pdc_sfm.store.writers import new_h5, read_record, write_keypoints, write_matches, write_record

POINTS = np.arange(12, dtype=np.float32).reshape(6, 2)
MATCHES = np.array([[0, 3], [4, 1]])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Bytes of a feature, a match and a depth file."""
    folder = tmp_path_factory.mktemp("h5")
    with new_h5(folder / "f.h5") as file:
        for name in ("db/1.jpg", "db/2.jpg"):
            write_keypoints(file, name, POINTS, np.ones(6), (640, 480))
        write_record(file, {"runs": ["a"]})
    with new_h5(folder / "m.h5") as file:
        write_matches(file, "db/1.jpg", "db/2.jpg", MATCHES, np.array([0.5, 1]))
    with new_h5(folder / "d.h5") as file:
        file["depth"] = np.ones((4, 5), np.float32)
    return {kind: (folder / f"{kind}.h5").read_bytes() for kind in "fmd"}


def use_features(path):
    with open_features(path) as file:
        for name in ["db/1.jpg", "db/2.jpg", *file.names()]:
            if name in file:
                points = file.keypoints(name).points
                assert points.shape[1] == 2
                assert np.isfinite(points).all()
                file.scores(name)
                file.attribute(name, "pdc_sfm_run")
                with h5py.File(path.with_suffix(".copy"), "w") as copy:
                    file.copy_image(name, copy)
    assert isinstance(read_record(path), dict)


def use_matches(path):
    with open_matches(path) as file:
        if ("db/2.jpg", "db/1.jpg") in file:
            matches, scores = file.matches("db/2.jpg", "db/1.jpg")
            assert matches.shape == (len(scores), 2)
            assert (matches >= 0).all()


def use_depth(path):
    assert np.isfinite(read_depth(path)).all()


@pytest.mark.parametrize(("kind", "use"), [("f", use_features), ("m", use_matches), ("d", use_depth)])
@examples(25)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(whole, tmp_path, kind, use, data):
    path = tmp_path / "a.h5"
    path.write_bytes(data.draw(damaged(whole[kind])))
    assert in_child(lambda: use(path)) in ("done", "refused")


@examples(40)
@given(st.lists(names(), min_size=2, max_size=3, unique=True))
def test_keypoints_and_matches_of_odd_names_are_read_as_written(tmp_path, listed):
    try:
        for name in listed:
            check_name(name)
        pair = listed[0], listed[1]
        check_keys([pair])
    except UserError:
        return
    if any(other.startswith(f"{name}/") for name in listed for other in listed):
        return  # a file cannot be a folder as well
    with new_h5(tmp_path / "f.h5") as file:
        for k, name in enumerate(listed):
            write_keypoints(file, name, POINTS + k, None, (640, 480))
    with new_h5(tmp_path / "m.h5") as file:
        write_matches(file, *pair, MATCHES, np.ones(2))
    with open_features(tmp_path / "f.h5") as file:
        assert file.names() == sorted(listed)
        for k, name in enumerate(listed):
            np.testing.assert_array_equal(file.keypoints(name).points, POINTS + k)
    with open_matches(tmp_path / "m.h5") as file:
        np.testing.assert_array_equal(file.matches(*pair)[0], MATCHES)
        np.testing.assert_array_equal(file.matches(*pair[::-1])[0], MATCHES[:, ::-1])


@pytest.mark.parametrize(
    ("key", "value"),
    [("keypoints", np.full((2, 2), np.nan)), ("keypoints", np.array([b"a", b"b"])), ("keypoints", 5), ("keypoints", POINTS[:, 0]),
     ("image_size", np.array([640, 0])), ("image_size", np.array([640]))],
)  # fmt: skip
def test_keypoints_that_cannot_be_are_refused(tmp_path, key, value):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        group = file.create_group("a.jpg")
        group["keypoints"] = POINTS
        if key in group:
            del group[key]
        group[key] = value
    with open_features(tmp_path / "f.h5") as file, pytest.raises(FormatError, match=r"f\.h5"):
        file.keypoints("a.jpg")


@pytest.mark.parametrize("value", [np.array([0.5, 1.5]), np.zeros((2, 2), int), 3, np.array([b"x"])])
def test_matches_that_cannot_be_are_refused(tmp_path, value):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["a/b/matches0"] = value
    with open_matches(tmp_path / "m.h5") as file, pytest.raises(FormatError, match=r"m\.h5"):
        file.matches("a", "b")


def test_a_group_in_the_place_of_an_array_is_not_taken_for_one(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("x/keypoints")
        file.create_group("a/b/matches0")
        file.create_group("depth")
    with open_features(tmp_path / "a.h5") as file:
        assert "x" not in file
    with open_matches(tmp_path / "a.h5") as file:
        assert ("a", "b") not in file
    with pytest.raises(FormatError, match="no dataset"):
        read_depth(tmp_path / "a.h5")
