"""What counts as registered, and what the progress of mapping says."""

import pycolmap
import pytest

from pdc_sfm.colmap.mapping.mappers import FEWEST, drop_bad_images, map_incrementally
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings
from pdc_sfm.progress import Progress


@pytest.fixture
def model():
    """Six images, each of its own camera."""
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_cameras_per_rig, options.num_frames_per_rig, options.num_points3D = 6, 1, 1, 100
    return pycolmap.synthesize_dataset(options)


def test_an_image_whose_camera_ran_away_is_not_registered(model):
    image = model.image(model.reg_image_ids()[2])
    params = model.camera(image.camera_id).params
    params[0] = -15000
    model.camera(image.camera_id).params = params
    assert drop_bad_images(model) == 1
    assert image.image_id not in model.reg_image_ids()
    assert model.num_reg_images() == 5
    assert drop_bad_images(model) == 0


def test_an_image_that_sees_next_to_no_points_is_not_registered(model):
    image = model.image(model.reg_image_ids()[0])
    seen = [index for index, point in enumerate(image.points2D) if point.has_point3D()]
    for index in seen[FEWEST - 1 :]:
        model.delete_observation(image.image_id, index)
    assert drop_bad_images(model) == 1
    assert image.image_id not in model.reg_image_ids()


def test_a_model_of_which_nothing_would_remain_is_left_as_it_is(model):
    for camera in model.cameras.values():
        camera.params = [-1, *camera.params[1:]]
    assert drop_bad_images(model) == 0
    assert model.num_reg_images() == 6


def test_a_count_that_begins_again_says_so(tmp_path, monkeypatch):
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_cameras_per_rig, options.num_frames_per_rig, options.num_points3D = 6, 1, 1, 100
    with pycolmap.Database.open(tmp_path / "database.db") as database:
        pycolmap.synthesize_dataset(options, database)

    def grow_twice(*_, initial_image_pair_callback, next_image_callback):
        for _ in range(2):
            initial_image_pair_callback()
            for _ in range(7):  # more often than there are images: some were taken out and found again
                next_image_callback()
            lines.append(bars[-1].line())
        return {}

    bars, lines = [], []
    update = Progress.update
    monkeypatch.setattr(Progress, "update", lambda bar, n=1: (bars.append(bar), update(bar, n)))
    monkeypatch.setattr(pycolmap, "incremental_mapping", grow_twice)
    map_incrementally(tmp_path / "database.db", tmp_path, tmp_path / "work", ReconstructionSettings(), True)
    assert [line.split(",")[0] for line in lines] == ["mapping: 6 of 6 images", "mapping"]
    assert "mapping, attempt 2: 6 of 6 images" in lines[1]
