"""A wall and a floor with exact cameras: depth, normals and uncertainty of the cloud are those of the planes."""

import json
import shutil

import numpy as np
import pycolmap
import pytest
from two_planes import FLOOR, NAMES, SIZE, WALL, TrueFlow, true_depth, write_map

from pdc_sfm.cli import main
from pdc_sfm.engine.weights_file import WeightsFile
from pdc_sfm.fusion import DensifySettings, densify
from pdc_sfm.fusion.cloud import read_cloud
from pdc_sfm.fusion.workspace import read_map
from pdc_sfm.images import write_image


def lower_half(points):
    """The network knows nothing of the floor's half of the images."""
    return points[..., 1] > SIZE[1] / 2


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planes")
    model = write_map(folder)
    source = TrueFlow(lower_half)
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    made = densify(model, workers=0, source=source)
    after = {path.name: path.read_bytes() for path in model.iterdir() if path.name != "dense"}
    assert after == before  # the map is only read
    return folder, made, source


def test_depth_is_that_of_the_planes(world):
    _, made, _ = world
    for number, name in enumerate(NAMES):
        depth, truth = read_map(made.output / "stereo" / "depth_maps" / f"{name}.geometric.bin"), true_depth(number)
        known = depth > 0
        assert known.mean() > 0.6  # most of each image is seen by two others
        error = np.abs(depth / truth - 1)[known]
        assert np.mean(error < 0.01) > 0.9  # a tenth of a pixel, of neighbors
        assert np.mean(error > 0.03) < 0.03


def test_every_image_is_encoded_once(world):
    _, _, source = world
    assert sorted(source.encoded) == sorted(NAMES)


def test_points_lie_on_the_planes_with_their_normals_and_as_far_off_as_they_say(world):
    _, made, _ = world
    cloud = read_cloud(made.output / "fused.ply")
    assert len(cloud) == made.points > 5000
    off = np.stack([np.abs(cloud["xyz"] @ plane - 1) / np.linalg.norm(plane) for plane in (WALL, FLOOR)], -1)
    plane, nearest = off.argmin(1), off.min(1)
    assert np.quantile(nearest, 0.95) < 0.04  # 1 % of 4
    facing = np.where(plane == 0, -cloud["normal"][:, 2], -cloud["normal"][:, 1])  # towards the cameras
    assert np.quantile(facing, 0.1) > np.cos(np.deg2rad(15))
    ratio = nearest / cloud["sigma"]
    assert 0.1 < np.median(ratio) < 1.5  # 0.67 for exact sigmas along the plane's normal


def test_colors_are_those_of_the_pictures(world):
    _, made, _ = world
    cloud = read_cloud(made.output / "fused.ply")
    assert cloud["rgb"].std(0).min() > 20  # textured


def test_colmap_reads_it(world):
    """Its own fusion takes the depth and normal maps, its own Poisson makes a mesh of the cloud."""
    folder, made, _ = world
    options = pycolmap.StereoFusionOptions(min_num_pixels=3)
    (folder / "theirs").mkdir()
    theirs = pycolmap.stereo_fusion(folder / "theirs", made.output, options=options)
    points = np.array([point.xyz for point in theirs.points3D.values()])
    assert len(points) > 1000
    off = np.min([np.abs(points @ plane - 1) / np.linalg.norm(plane) for plane in (WALL, FLOOR)], axis=0)
    assert np.quantile(off, 0.9) < 0.04


def test_visibility_names_images_that_see_the_point(world):
    _, made, _ = world
    data = np.fromfile(made.output / "fused.ply.vis", np.uint8)
    count = int(data[:8].view("<u8")[0])
    words, sees, place = data[8:].view("<u4"), [], 0
    for _ in range(count):
        number = int(words[place])
        sees.append(set(words[place + 1 : place + 1 + number].tolist()))
        place += 1 + number
    assert count == made.points
    assert place == len(words)
    assert all(images and images <= set(range(len(NAMES))) for images in sees)
    assert np.mean([len(images) for images in sees]) > 2.5


def test_other_settings_of_the_cloud_need_no_new_depth(world, capsys):
    folder, made, _ = world
    stricter = densify(folder / "sfm", settings=DensifySettings(seen=4, probability=0.9), workers=0, source=None)
    assert 0 < stricter.points < made.points
    assert set(stricter.seconds) == {"images", "checks", "fusion"}
    again = densify(folder / "sfm", workers=0)
    assert again.points == made.points
    assert main(["densify", "--map", str(folder / "sfm"), "partners=3"]) == 2
    assert "was made otherwise (partners: 8 -> 3): choose another --output" in capsys.readouterr().err


def test_weights_are_known_by_their_content_as_everywhere(world, capsys, monkeypatch):
    folder, made, _ = world
    assert densify(folder / "sfm", settings=DensifySettings(weights="compact"), workers=0).points == made.points
    assert main(["densify", "--map", str(folder / "sfm"), "weights=nowhere.pth"]) == 2
    assert "nowhere.pth: does not exist" in capsys.readouterr().err
    another = WeightsFile(None, "of a later version")
    monkeypatch.setattr("pdc_sfm.fusion.run.WeightsFile.of", lambda weights: another)
    assert main(["densify", "--map", str(folder / "sfm")]) == 2
    assert "was made otherwise (weights: " in capsys.readouterr().err


def test_a_distorted_camera_is_undistorted_and_a_mask_with_it(tmp_path):
    """Depth is that of the pinhole camera; what the mask covers in the photograph gets none in the undistorted image."""
    model = write_map(tmp_path, distortion=-0.1)
    mask = np.full((*SIZE[::-1], 3), 255, np.uint8)
    mask[:, :30] = 0
    for name in NAMES:
        write_image(tmp_path / "masks" / f"{name}.png", mask)
    made = densify(
        model, tmp_path / "out", masks=tmp_path / "masks", workers=0, source=TrueFlow(lambda p: p[..., 0] > -9)
    )
    undistorted = pycolmap.Reconstruction(tmp_path / "out" / "sparse")
    camera = undistorted.camera(1)
    assert camera.model_name == "PINHOLE"
    depth = read_map(made.output / "stereo" / "depth_maps" / f"{NAMES[2]}.geometric.bin")
    assert depth.shape == (camera.height, camera.width)
    original = pycolmap.Camera(model="SIMPLE_RADIAL", width=128, height=96, params=[110.0, 64, 48, -0.1])
    y, x = np.nonzero(depth)
    rays = np.asarray(camera.cam_from_img(np.stack([x, y], -1) + 0.5))
    there = np.asarray(original.img_from_cam(np.c_[rays, np.ones(len(rays))]))
    assert there[:, 0].min() > 29.5
    wall = rays[:, 1] < 0.2
    assert np.mean(np.abs(depth[y, x][wall] / 4 - 1) < 0.01) > 0.9


def test_a_killed_run_goes_on(tmp_path, monkeypatch):
    """Killed at any image of any step, the same call ends with the same cloud, byte by byte."""
    from pdc_sfm.fusion import run as module

    model = write_map(tmp_path, count=3)
    whole = densify(model, tmp_path / "whole", workers=0, source=TrueFlow())
    calls = []

    class Killed(BaseException):
        pass

    def dying(step):
        def work(*args):
            calls.append(step.__name__)
            if len(calls) in (2, 5, 9, 12):  # an image of each step
                raise Killed
            return step(*args)

        return work

    for name in ("photometric_step", "geometric_step", "check_step", "fuse"):
        monkeypatch.setattr(module, name, dying(getattr(module, name)))
    made = None
    for _ in range(20):
        try:
            made = densify(model, tmp_path / "killed", workers=0, source=TrueFlow())
            break
        except Killed:
            continue
    assert made is not None
    assert calls.count("photometric_step") <= 6
    assert (tmp_path / "killed" / "fused.ply").read_bytes() == (whole.output / "fused.ply").read_bytes()


def refused(capsys, *words) -> str:
    assert main(["densify", *map(str, words)]) == 2
    lines = capsys.readouterr().err.strip().split("\n")
    assert len(lines) == 1
    return lines[0]


def test_what_cannot_be_densified_is_said(tmp_path, capsys):
    model = write_map(tmp_path, count=3)
    (tmp_path / "photos" / NAMES[1]).rename(tmp_path / "photos" / "away.png")
    assert f"1 images of the map are not in {tmp_path / 'photos'} (first: 1.png)" in refused(capsys, "--map", model)
    (tmp_path / "photos" / "away.png").rename(tmp_path / "photos" / NAMES[1])
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("x")
    assert "holds other files" in refused(capsys, "--map", model, "--output", tmp_path / "taken")
    assert "is an input" in refused(capsys, "--map", model, "--output", model)
    assert "lies in" in refused(capsys, "--map", model, "--output", tmp_path / "photos" / "dense")
    summary = json.loads((model / "summary.json").read_text())
    (model / "summary.json").write_text(json.dumps(summary | {"inputs": {}}))
    assert "are not known: give --images" in refused(capsys, "--map", model)


def test_a_map_of_one_image(tmp_path, capsys):
    model = write_map(tmp_path, count=1)
    assert "1 image with a pose: depth takes two or more" in refused(capsys, "--map", model)


def test_a_map_without_points(tmp_path, capsys):
    model = write_map(tmp_path, count=3)
    bare = pycolmap.Reconstruction(model)
    for point in list(bare.points3D):
        bare.delete_point3D(point)
    bare.write_binary(model)
    assert "has no points" in refused(capsys, "--map", model)


def test_a_name_that_leads_elsewhere(tmp_path, capsys):
    model = write_map(tmp_path, count=2)
    spoiled = pycolmap.Reconstruction(model)
    spoiled.image(1).name = "../../escaped.png"
    shutil.copy(tmp_path / "photos" / NAMES[0], tmp_path / "escaped.png")
    spoiled.write_binary(model)
    assert "is not a path below the image folder" in refused(capsys, "--map", model)


def test_view_shows_the_cloud_instead_of_the_points(world, tmp_path, capsys):
    folder, made, _ = world
    assert main(["view", str(folder / "sfm"), "--page", str(tmp_path / "view.html")]) == 0
    assert f"{made.points:,} points of the dense cloud, 5 cameras" in capsys.readouterr().out
    assert main(["view", str(folder / "sfm"), "--output", str(tmp_path / "view.png"), "--size", "320", "200"]) == 0
    assert f"{made.points:,} points" in capsys.readouterr().out
    assert main(["view", str(folder / "sfm"), "--sparse", "--page", str(tmp_path / "view.html")]) == 0
    assert "dense" not in capsys.readouterr().out


def test_a_mesh_of_the_cloud(world):
    folder, made, _ = world
    meshed = densify(folder / "sfm", mesh=True, workers=0)
    header = (meshed.output / "meshed-poisson.ply").read_bytes()[:600].decode("ascii", "replace")
    faces = int(header.split("element face ")[1].split()[0])
    assert faces > 1000
