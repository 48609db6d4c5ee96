"""Arrays and pickles of datasets after an accident: read, or refused; nothing in them runs, and no memory is taken for it."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_input import damaged, examples, refused_or

from pdc_sfm.errors import FormatError
from pdc_sfm.training.npz import read_npz, read_pickle

PATHS = np.array(["a/1.jpg", None, "ü.jpg"], object)
NUMBERS = np.arange(12.0).reshape(3, 4)
ENTRIES = [{"name": "a.jpg", "Xs": np.arange(5.0), "n": np.float32(2.5)}, {"name": "b.jpg", "Xs": np.zeros(0), "n": 3}]


def npz_bytes():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, paths=PATHS, numbers=NUMBERS)
    return buffer.getvalue()


NPZ, PICKLE = npz_bytes(), pickle.dumps(ENTRIES)


def test_undamaged_files_are_read_as_saved(tmp_path):
    (tmp_path / "a.npz").write_bytes(NPZ)
    paths, numbers = read_npz(tmp_path / "a.npz", ["paths", "numbers"])
    assert list(paths) == list(PATHS)
    np.testing.assert_array_equal(numbers, NUMBERS)
    for protocol in range(6):
        (tmp_path / "a").write_bytes(pickle.dumps(ENTRIES, protocol))
        first = read_pickle(tmp_path / "a")[0]
        np.testing.assert_array_equal(first["Xs"], ENTRIES[0]["Xs"])
        assert first["n"] == 2.5


@examples(120)
@given(damaged(NPZ))
def test_a_damaged_npz(tmp_path, data):
    (tmp_path / "a.npz").write_bytes(data)
    found = refused_or(lambda: read_npz(tmp_path / "a.npz", ["paths", "numbers"]))
    if found is not None:  # the archive has checksums: what is read is what was written
        assert list(found[0]) == list(PATHS)
        np.testing.assert_array_equal(found[1], NUMBERS)


@examples(200)
@given(st.one_of(damaged(PICKLE), damaged(pickle.dumps(ENTRIES, 2)), st.binary(max_size=40)))
def test_a_damaged_pickle(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    refused_or(lambda: read_pickle(tmp_path / "a"))


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(2, 3)", "(-1,)", "((", "(3"])
def test_a_shape_that_is_not_that_of_the_data_is_refused(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24))
    with pytest.raises(FormatError, match=r"cannot read .*a\.npz"):
        read_npz(tmp_path / "a.npz", ["x"])
