"""NVM files, whatever stands in them: poses and points as written, or a line that names the place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_input import damaged_text, examples, lines_of, names, refused_or

from pdc_sfm.aachen.nvm import read_nvm
from pdc_sfm.errors import FormatError

GOOD = "NVM_V3\n\n2\ndb/1.jpg 500 1 0 0 0 1 2 3 0 0\ndb/ü2.jpg 500 0 1 0 0 0 0 0 0 0\n\n1\n1 2 3 9 9 9 2 0 5 0 0 1 6 0 0\n0\n"
FINITE = st.floats(-1e6, 1e6)


@examples(40)
@given(st.lists(names(), min_size=1, max_size=3, unique=True), st.data())
def test_what_is_written_is_read_again(tmp_path, listed, data):
    rows = [data.draw(st.lists(FINITE, min_size=7, max_size=7)) for _ in listed]
    lines = [f"{name} 500 {' '.join(map(repr, row))} 0 0" for name, row in zip(listed, rows)]
    path = lines_of(tmp_path / "a.nvm", "\n".join(["NVM_V3", "", str(len(listed)), *lines, "", "0", "0"]))
    models = refused_or(lambda: read_nvm(path))
    if models is not None and all(name.split() == [name] for name in listed):
        assert models[0].names == tuple(listed)
        np.testing.assert_array_equal(np.c_[models[0].quaternions, models[0].centers], rows)
        assert np.isfinite(models[0].poses()).all()


@examples(120)
@given(st.one_of(damaged_text(GOOD), st.text(max_size=40).map("NVM_V3\n".__add__)), st.booleans())
def test_a_file_with_junk_is_a_model_that_can_be_or_is_refused(tmp_path, text, points):
    for model in refused_or(lambda: read_nvm(lines_of(tmp_path / "a.nvm", text), points)) or ():
        assert np.isfinite(model.poses()).all()
        np.testing.assert_allclose(np.linalg.det(model.poses()[:, :, :3]), 1, rtol=1e-6)
        assert len(set(model.names)) == len(model.names) == len(model.centers)
        assert ((model.observed_image >= 0) & (model.observed_image < len(model.names))).all()
        assert np.isfinite(model.points).all()
        assert len(model.observed_point) == len(model.observed_image)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("500 1 0 0 0 1", "500 0 0 0 0 1", 4), ("db/ü2.jpg", "db/1.jpg", 5), ("0 0 0 0 0\n\n1", "0 nan 0 0 0\n\n1", 5),
        ("1 6 0 0", "2 6 0 0", 8), ("1 6 0 0", "-1 6 0 0", 8), ("9 2 0", "9 3 0", 8), ("2\ndb/1", f"{10**18}\ndb/1", 7),
        ("1\n1 2 3", "-1\n1 2 3", 7), ("1\n1 2 3", f"{10**18}\n1 2 3", 9), ("1 2 3 9", "nan 2 3 9", 8),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named_by_its_line(tmp_path, old, new, line):
    assert GOOD.count(old) == 1
    with pytest.raises(FormatError, match=rf"a\.nvm line {line} "):
        read_nvm(lines_of(tmp_path / "a.nvm", GOOD.replace(old, new)))


def test_the_variant_with_rotation_matrices_is_not_taken_for_quaternions(tmp_path):
    with pytest.raises(FormatError, match="is not an NVM_V3 file"):
        read_nvm(lines_of(tmp_path / "a.nvm", GOOD.replace("NVM_V3", "NVM_V3_R9T")))
