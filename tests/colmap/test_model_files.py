"""Damaged models are refused at once."""

import numpy as np
import pycolmap
import pytest

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.errors import FormatError


@pytest.fixture
def folder(tmp_path):
    """A model of COLMAP's own making."""
    options = pycolmap.SyntheticDatasetOptions()
    options.num_points3D = 50
    pycolmap.synthesize_dataset(options).write_binary(tmp_path)
    return tmp_path


def test_a_whole_model_is_read(folder):
    assert load_model(folder).num_points3D() == 50


@pytest.mark.parametrize("name", ["images.bin", "points3D.bin"])
def test_a_model_cut_off_anywhere_is_named(folder, name):
    data = (folder / name).read_bytes()
    for length in np.linspace(0, len(data) - 1, 12).astype(int):
        (folder / name).write_bytes(data[:length])
        with pytest.raises(FormatError, match=f"{name} is damaged or cut off"):
            load_model(folder)


@pytest.mark.parametrize("name", ["cameras.bin", "images.bin", "points3D.bin"])
def test_counts_that_cannot_be_are_not_believed(folder, name):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(b"\xff" * 8 + data[8:])
    with pytest.raises(FormatError, match=f"{name} is damaged or cut off"):
        load_model(folder)
