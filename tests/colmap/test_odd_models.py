"""Models and databases after an accident: read, or refused. COLMAP itself may end the process or never return on them."""

import pycolmap
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_input import damaged, damaged_text, examples, in_child

from pdc_sfm.colmap.io.database_images import read_database_images
from pdc_sfm.colmap.io.models import load_model, summarize
from pdc_sfm.colmap.io.point_lookup import PointLookup

FILES = ("cameras", "images", "points3D", "rigs", "frames")


@pytest.fixture(scope="module")
def model():
    options = pycolmap.SyntheticDatasetOptions()
    options.num_points3D, options.num_rigs, options.num_frames_per_rig, options.num_cameras_per_rig = 8, 1, 3, 2
    return pycolmap.synthesize_dataset(options)


def use(folder):
    """What every later step does with a model."""
    loaded = load_model(folder)
    summarize(loaded)
    PointLookup(loaded)
    for image_id in loaded.reg_image_ids():
        loaded.image(image_id).cam_from_world()


@pytest.mark.parametrize("suffix", ["bin", "txt"])
@pytest.mark.parametrize("name", FILES)
@examples(10)
@given(data=st.data())
def test_a_damaged_model_is_read_or_refused(model, tmp_path, name, suffix, data):
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    (model.write_binary if suffix == "bin" else model.write_text)(folder)
    path = folder / f"{name}.{suffix}"
    if suffix == "bin":
        path.write_bytes(data.draw(damaged(path.read_bytes())))
    else:
        path.write_bytes(data.draw(damaged_text(path.read_text())).encode("utf-8", "surrogatepass"))
    assert in_child(lambda: use(folder)) in ("done", "refused")


@pytest.fixture(scope="module")
def database(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "a.db"
    with pycolmap.Database.open(path) as opened:
        for camera in model.cameras.values():
            opened.write_camera(camera, use_camera_id=True)
        for number in range(30):
            opened.write_image(pycolmap.Image(name=f"db/{number}.jpg", camera_id=1))
    return path.read_bytes()


@examples(25)
@given(data=st.data())
def test_a_damaged_database_is_read_or_refused(database, tmp_path, data):
    path = tmp_path / "a.db"
    path.write_bytes(data.draw(damaged(database)))

    def read():
        for name, ids in read_database_images(path).items():
            assert (type(name), type(ids.image_id), type(ids.camera_id)) == (str, int, int)

    assert in_child(read) in ("done", "refused")
