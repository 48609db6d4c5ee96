"""A scene on disk: read back, it is what was rendered; in Aachen's layout, what Aachen's readers expect."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.nvm import read_nvm
from pdc_sfm.errors import SettingsError
from pdc_sfm.images import list_images, read_image
from pdc_sfm.scenes import (
    flow_from_depth,
    plan_shots,
    read_cameras,
    read_depth,
    take_pictures,
    write_aachen,
    write_scene,
)

NUMBER = r"-?\d+\.\d+"


@pytest.fixture(scope="module")
def plain(settings, tmp_path_factory):
    return write_scene(tmp_path_factory.mktemp("plain"), settings)


@pytest.fixture(scope="module")
def aachen(settings, tmp_path_factory):
    return write_aachen(tmp_path_factory.mktemp("aachen"), settings)


def test_a_plain_folder_holds_images_cameras_and_depth(plain, settings, town):
    shots = {shot.name: shot for shot in plan_shots(settings, town.taken)}
    cameras = read_cameras(plain)
    assert list_images(plain / "images") == sorted(shots)
    assert sorted(cameras) == sorted(shots)
    for name, shot in shots.items():
        camera = cameras[name]
        np.testing.assert_array_equal(camera.cam_from_world, shot.camera.cam_from_world)
        assert (camera.size, camera.focal) == (shot.camera.size, shot.camera.focal)
        depth, moving = read_depth(plain / "depth" / name)
        assert read_image(plain / "images" / name).shape == (camera.height, camera.width, 3)
        assert depth.shape == moving.shape == (camera.height, camera.width)
    record = json.loads((plain / "scene.json").read_text())
    assert record["settings"]["database"] == 3
    assert record["images"]["night/0001.jpg"]["role"] == "night"


def test_cameras_of_the_walk_share_views(plain):
    """Depth and cameras on disk are enough for flow: neighbors on the walk see the same places."""
    cameras = read_cameras(plain)
    names = sorted(name for name in cameras if name.startswith("db/"))
    depth = {name: read_depth(plain / "depth" / name)[0] for name in names}
    shares = [
        flow_from_depth(cameras[a], depth[a], cameras[b], depth[b])[1].mean() for a in names for b in names if a != b
    ]
    assert max(shares) > 0.03


def test_a_second_call_renders_nothing_and_another_scene_is_refused(plain, settings):
    before = (plain / "images/db/0001.jpg").stat().st_mtime_ns
    write_scene(plain, settings)
    assert (plain / "images/db/0001.jpg").stat().st_mtime_ns == before
    with pytest.raises(SettingsError, match="seed: 0 -> 5"):
        write_scene(plain, replace(settings, seed=5))
    with pytest.raises(SettingsError, match="layout: plain -> aachen"):
        write_aachen(plain, settings)


def test_aachen_has_the_poses_it_was_rendered_with(aachen, settings, town):
    dataset = AachenDataset(aachen, "1.0")
    database = [shot for shot in plan_shots(settings, town.taken) if shot.role == "db"]
    (model,) = read_nvm(dataset.nvm)
    assert model.names == ("db/1.jpg", "db/2.jpg", "db/3.jpg")
    for pose, shot in zip(model.poses(), database):
        np.testing.assert_allclose(pose, shot.camera.cam_from_world, atol=1e-9)
    for line, shot in zip(dataset.intrinsics.read_text().splitlines(), database):
        name, kind, width, height, focal, cx, cy, radial = line.split()
        assert (kind, int(width), int(height)) == ("SIMPLE_RADIAL", *shot.camera.size)
        assert (float(cx), float(cy), float(radial)) == (shot.camera.width / 2, shot.camera.height / 2, 0)
        assert float(focal) == pytest.approx(shot.camera.focal, abs=1e-6)


def test_aachen_points_project_to_their_observations(aachen, settings, town):
    cameras = [shot.camera for shot in plan_shots(settings, town.taken) if shot.role == "db"]
    lines = AachenDataset(aachen, "1.0").nvm.read_text().split("\n\n")[2].splitlines()
    assert int(lines[0]) == len(lines) - 1 > 0
    for line in lines[1:]:
        words = line.split()
        point, track = np.array(words[:3], float), np.array(words[7:], float).reshape(-1, 4)
        assert len(track) == int(words[6]) >= 2
        for image, _, x, y in track:
            pixel, depth = cameras[int(image)].project(point)
            assert depth > 0
            np.testing.assert_allclose(pixel + 0.5, [x, y], atol=1e-6)  # the file counts from the image's corner


def test_aachen_query_lists_name_the_images_and_their_true_poses(aachen, settings, town):
    dataset = AachenDataset(aachen, "1.0")
    names = [path.split()[0] for role in ("day", "night") for path in _list(aachen, role)]
    assert names == ["query/day/nexus4/IMG_20140520_150001.jpg", "query/night/nexus5x/IMG_20161227_180001.jpg"]
    assert sorted(list_images(dataset.images)) == sorted([*names, "db/1.jpg", "db/2.jpg", "db/3.jpg"])
    truth = [line.split() for line in (aachen / "ground_truth/query_poses.txt").read_text().splitlines()]
    assert [words[0] for words in truth] == names
    queries = [shot.camera for shot in plan_shots(settings, town.taken) if shot.role != "db"]
    for words, camera in zip(truth, queries):
        w, x, y, z, *translation = map(float, words[1:])
        np.testing.assert_allclose(translation, camera.cam_from_world[:, 3], atol=1e-9)
        assert w * w + x * x + y * y + z * z == pytest.approx(1)
        assert 4 * w * w - 1 == pytest.approx(np.trace(camera.cam_from_world[:, :3]))


def _list(folder, role):
    return (folder / "queries" / f"{role}_time_queries_with_intrinsics.txt").read_text().splitlines()


def test_version_1_1_has_its_own_paths_and_a_sequence(settings, tmp_path):
    write_aachen(tmp_path, replace(settings, database=5, night_queries=2, depth=False), "1.1")
    dataset = AachenDataset(tmp_path, "1.1")
    (model,) = read_nvm(dataset.nvm)
    assert model.names[:3] == ("db/1.jpg", "db/2.jpg", "db/3.jpg")
    assert model.names[3:] == tuple(f"sequences/nexus4_sequences/sequence_1/aachen_{k:04d}.jpg" for k in (4, 5))
    assert dataset.intrinsics.read_text().count("\n") == 5
    assert _list(tmp_path, "night")[1].startswith("query/night/nexus5x_additional_night/")
    assert all((dataset.images / name).is_file() for name in model.names)
    assert not (tmp_path / "depth").exists()


def test_lines_look_as_in_the_official_files(aachen, shared):
    """Each line of the official sample and ours match the same pattern."""
    official = shared / "data/aachen/official_sample"
    camera = re.compile(rf"^db/\d+\.jpg {NUMBER}( {NUMBER}){{8}} 0$")
    point = re.compile(rf"^{NUMBER} {NUMBER} {NUMBER} \d+ \d+ \d+ (\d+)( \d+ \d+ {NUMBER} {NUMBER})+$")
    query = re.compile(r"^query/(day|night)/\w+/[\w-]+\.jpg SIMPLE_RADIAL \d+ \d+ [\d.]+ \d+ \d+ -?[\d.]+$")
    for root in (official, aachen):
        header, cameras, points = (root / "3D-models/aachen_cvpr2018_db.nvm").read_text().split("\n\n")
        assert header == "NVM_V3"
        for block, pattern in ((cameras, camera), (points, point)):
            count, *lines = block.strip().split("\n")
            assert int(count) == len(lines) > 0
            assert all(pattern.match(line) for line in lines)
        assert all(query.match(line) for line in _list(root, "day"))


def test_pictures_do_not_depend_on_the_number_of_workers(settings):
    few = replace(
        settings, width=64, height=64, database=2, day_queries=0, night_queries=1, sky_directions=1, shadow_texel=0.5
    )
    alone, together = (list(take_pictures(few, workers)) for workers in (1, 2))
    assert [shot.name for shot, _ in together] == ["db/0001.jpg", "db/0002.jpg", "night/0001.jpg"]
    for (_, one), (_, other) in zip(alone, together):
        np.testing.assert_array_equal(one.image, other.image)
        np.testing.assert_array_equal(one.depth, other.depth)
