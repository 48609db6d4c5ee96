"""Panoramas as rigs: views show what lies in their direction, and a map of them has one pose for each panorama."""

import dataclasses

import numpy as np
import pycolmap
import pytest
from projections import Scene, exact_matcher, look_at

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.io.rigs import read_rig_file
from pdc_sfm.demo import panorama_settings, run_photographs
from pdc_sfm.errors import ImageError, OtherSettingsError
from pdc_sfm.evaluation.measures.poses import reconstruction_errors
from pdc_sfm.images import list_images, read_image, write_image
from pdc_sfm.media.panoramas import PanoramaSettings, panorama_views, write_views

HEIGHT = 200


def color(rays):
    """Smooth in the direction: red to the right, green downwards, blue ahead."""
    return 127 + 100 * rays / np.linalg.norm(rays, axis=-1, keepdims=True)


def panorama(height=HEIGHT):
    """An equirectangular image of `color`."""
    longitude = ((np.arange(2 * height) + 0.5) / (2 * height) - 0.5) * 2 * np.pi
    latitude = (0.5 - (np.arange(height) + 0.5) / height) * np.pi
    longitude, latitude = np.meshgrid(longitude, latitude)
    rays = [np.cos(latitude) * np.sin(longitude), -np.sin(latitude), np.cos(latitude) * np.cos(longitude)]
    return np.rint(color(np.stack(rays, -1))).astype(np.uint8)


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        write_image(tmp_path / "around" / f"{number}.png", panorama())
    return tmp_path


def test_every_pixel_of_a_view_shows_what_lies_in_its_direction(folder):
    settings = PanoramaSettings(views=6, tilts=(0, 40, -90))
    assert write_views(folder / "around", folder / "views", settings) == ["0.png", "1.png", "2.png"]
    (rig,) = read_rig_file(folder / "views" / "rig.json")
    assert len(rig.cameras) == 18
    assert rig.is_known
    assert not rig.has_size
    for camera in rig.cameras:
        shown = read_image(folder / "views" / f"{camera.prefix}1.jpg").astype(float)
        side = shown.shape[0]
        assert side == round(2 * HEIGHT / np.pi)  # as fine as the panorama
        lens = pycolmap.Camera(model=camera.model, width=side, height=side, params=camera.params)
        x, y = np.meshgrid(np.arange(side) + 0.5, np.arange(side) + 0.5)
        rays = np.c_[lens.cam_from_img(np.stack([x, y], -1).reshape(-1, 2)), np.ones(side * side)]
        expected = color(rays @ camera.cam_from_rig.rotation.matrix()).reshape(side, side, 3)
        assert np.abs(shown - expected).mean() < 1.5  # JPEG
        assert np.abs(shown - expected).max() < 12
    assert np.allclose(panorama_views(settings)[0].rig_from_view, np.eye(3))
    assert len(pycolmap.read_rig_config(folder / "views" / "rig.json")[0].cameras) == 18


def test_a_smaller_view_is_averaged_and_a_run_goes_on(folder):
    settings = PanoramaSettings(side=64)
    write_views(folder / "around", folder / "views", settings)
    first = {name: (folder / "views" / name).stat().st_mtime_ns for name in list_images(folder / "views")}
    assert read_image(folder / "views" / "turn000" / "0.jpg").shape == (64, 64, 3)
    write_image(folder / "around" / "3.png", panorama())
    write_image(folder / "around" / "1.png", np.ascontiguousarray(panorama()[:, ::-1]))  # another picture
    write_views(folder / "around", folder / "views", settings)
    again = {name for name, time in first.items() if (folder / "views" / name).stat().st_mtime_ns != time}
    assert again == {f"{view.name}/1.jpg" for view in panorama_views(settings)}
    assert (folder / "views" / "turn300" / "3.jpg").is_file()
    with pytest.raises(OtherSettingsError, match="choose another output"):
        write_views(folder / "around", folder / "views", PanoramaSettings(side=80))


def test_what_is_no_panorama_is_one_line(folder, capsys):
    write_image(folder / "around" / "1.png", np.zeros((100, 150, 3), np.uint8))
    assert main(["panoramas", str(folder / "around"), "--output", str(folder / "views")]) == 2
    line = capsys.readouterr().err.strip().split("\n")[-1]
    assert "1.png is 150 x 100: an equirectangular image of all around is twice as wide as high" in line
    (folder / "empty").mkdir()
    with pytest.raises(ImageError, match="holds no images"):
        write_views(folder / "empty", folder / "out")


def test_panoramas_whose_views_would_have_one_name_are_refused(folder):
    write_image(folder / "around" / "1.jpg", panorama())
    with pytest.raises(ImageError, match=r"1\.jpg and 1\.png, whose views would have one name"):
        write_views(folder / "around", folder / "views")


def test_a_map_of_panoramas_has_one_pose_for_each(folder):
    """Points all around, seen by the views of six panoramas."""
    for number in range(3, 6):
        write_image(folder / "around" / f"{number}.png", panorama())
    settings = panorama_settings()
    write_views(folder / "around", folder / "views", settings.panoramas)
    (rig,) = read_rig_file(folder / "views" / "rig.json")
    rng = np.random.default_rng(0)
    rays = rng.normal(size=(900, 3))
    cloud = 8 * rays / np.linalg.norm(rays, axis=1, keepdims=True) + rng.normal(0, 0.8, (900, 3))
    scene, true = Scene({}, {}, cloud, {}, {}), {}
    side = round(2 * rig.cameras[0].params[2])
    for number in range(6):
        center = rng.uniform(-1.5, 1.5, 3)
        true[f"{number}.png"] = pose = look_at(center, center + rng.normal(size=3) * [1, 0.2, 1])
        for camera in rig.cameras:
            name = f"{camera.prefix}{number}.jpg"
            local = camera.cam_from_rig.rotation.matrix() @ (cloud @ pose[:, :3].T + pose[:, 3]).T
            lens = pycolmap.Camera(model=camera.model, width=side, height=side, params=camera.params)
            pixels = np.asarray(lens.img_from_cam(local.T))
            inside = (local[2] > 0.1) & (pixels > 0).all(axis=1) & (pixels < side).all(axis=1)
            seen = rng.permutation(np.flatnonzero(inside))
            scene.cameras[name], scene.poses[name], scene.visible[name] = lens, pose, seen
            scene.keypoints[name] = (pixels[seen] - 0.5).astype(np.float32)
    chosen = dataclasses.replace(settings.reconstruction, refine_keypoints=False)
    settings = dataclasses.replace(settings, report=False, reconstruction=chosen)
    run = run_photographs(folder / "around", folder / "run", settings, panoramas=True, match=exact_matcher(scene))
    poses = read_poses(run / "panoramas.txt")
    assert sorted(poses) == sorted(true)
    errors = reconstruction_errors(poses, true)
    assert errors.percents.max() < 0.1
    assert errors.degrees.max() < 0.05
    model = load_model(run / "sfm")
    assert model.num_reg_frames() == 6
    assert all(
        list(camera.params) == list(rig.cameras[0].params) for camera in model.cameras.values()
    )  # they are known
    assert any("of one place and moment" in step["summary"] for step in run.record["steps"])
