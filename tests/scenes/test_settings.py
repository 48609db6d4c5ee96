"""The scene follows from its settings; wrong ones are refused by name."""

import numpy as np
import pytest

from pdc_sfm.cli import main
from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.scenes import SceneSettings, build_scene, plan_shots, read_cameras


def test_a_seed_is_a_town(town, settings):
    again, other = (build_scene(SceneSettings(seed=seed), lit=False) for seed in (0, 1))
    np.testing.assert_array_equal(again.mesh.corners, town.mesh.corners)
    np.testing.assert_array_equal(again.mesh.tint, town.mesh.tint)
    assert len(other.mesh) != len(town.mesh)
    here, there = (plan_shots(SceneSettings(seed=seed), town.taken)[0].camera.center for seed in (0, 1))
    assert not np.allclose(here, there)


def test_cameras_stand_upright_on_free_ground_inside_the_square(town):
    for shot in plan_shots(SceneSettings(database=30, day_queries=8, night_queries=8), town.taken):
        pose = shot.camera.cam_from_world
        np.testing.assert_allclose(pose[:, :3] @ pose[:, :3].T, np.eye(3), atol=1e-12)
        assert np.linalg.det(pose[:, :3]) == pytest.approx(1)
        x, y, z = shot.camera.center
        assert abs(x) < 18
        assert abs(y) < 14
        assert 1.4 < z < 2.1
        assert (np.hypot(town.taken[:, 0] - x, town.taken[:, 1] - y) > town.taken[:, 2]).all()
        assert pose[1, 2] < -0.9  # the image's y axis points down


def test_queries_are_taken_with_other_cameras_some_held_upright():
    shots = plan_shots(SceneSettings(day_queries=4), np.zeros((0, 3)))
    days = [shot.camera for shot in shots if shot.role == "day"]
    assert [camera.size for camera in days] == [(640, 480)] * 3 + [(480, 640)]
    assert len({camera.focal for camera in days}) == 4


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("width=10", "width=10"),
        ("database=1", "database=1"),
        ("night_queries=-1", "night_queries=-1"),
        ("sed=3", "did you mean seed"),
    ],
)
def test_a_wrong_setting_is_named(word, message, tmp_path, capsys):
    assert main(["scene", "--output", str(tmp_path / "x"), word]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_folder_that_is_no_scene_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"cameras\.json"):
        read_cameras(tmp_path)
    with pytest.raises(SettingsError):
        SceneSettings(height=5000)


def test_the_command_writes_a_scene_and_says_so(tmp_path, capsys):
    words = [
        "width=64",
        "height=64",
        "database=2",
        "day_queries=0",
        "night_queries=0",
        "sky_directions=1",
        "shadow_texel=1",
        "depth=false",
    ]
    assert main(["scene", "--output", str(tmp_path), "--workers", "1", *words]) == 0
    assert "2 database, 0 day and 0 night images" in capsys.readouterr().out
    assert sorted(read_cameras(tmp_path)) == ["db/0001.jpg", "db/0002.jpg"]
