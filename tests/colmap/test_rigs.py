"""Cameras that are fixed to each other: COLMAP's rig file, maps with one pose a moment, and calibration that is found."""

import copy
import json

import numpy as np
import pycolmap
import pytest
from projections import look_at, write_features, write_images, write_matches, write_model, write_pairs
from rig_scene import PREFIXES, cam_from_rig, rig_entry, rig_scene

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.database import create_from_images
from pdc_sfm.colmap.io.models import ReconstructionError, has_metres, load_model, model_poses
from pdc_sfm.colmap.io.rigs import read_rig_file
from pdc_sfm.colmap.mapping.extension import extend_model
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.rig_calibration import estimate_rigs
from pdc_sfm.errors import FormatError

FRAMES = 5
SETTINGS = ReconstructionSettings(refine_keypoints=False, camera=CameraSettings(mode="per_folder"))


def write_rig(path, known=True, intrinsics=False, prefixes=PREFIXES):
    path.write_text(json.dumps([{"cameras": [rig_entry(prefix, known, intrinsics) for prefix in prefixes]}]))
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Moments of three cameras, with keypoints a pixel off."""
    folder = tmp_path_factory.mktemp("rig")
    scene = rig_scene(frames=FRAMES, points=300, noise=1.0)
    write_images(scene, folder / "images")
    write_pairs(folder / "pairs.txt", scene.pairs())
    write_features(scene, folder / "features.h5")
    write_matches(scene, folder / "matches.h5", scene.pairs())
    return folder, scene


def mapped(world, output, **more):
    folder, _ = world
    files = (folder / "images", folder / "pairs.txt", folder / "features.h5", folder / "matches.h5")
    return reconstruct(*files, output, SETTINGS, **more)


def command(world, output, rig):
    folder = world[0]
    words = ["reconstruct", "--images", folder / "images", "--pairs", folder / "pairs.txt", "--rig", rig]
    words += ["--features", folder / "features.h5", "--matches", folder / "matches.h5", "--output", output]
    return [str(word) for word in words]


def centers(poses, names):
    return np.stack([-poses[name][:, :3].T @ poses[name][:, 3] for name in names])


def position_errors(model, scene, scaled=True):
    """Metres, after the turn and shift (and scale) that lay the model over the truth."""
    poses = model_poses(model)
    found, true = centers(poses, sorted(poses)), centers(scene.poses, sorted(poses))
    found, true = found - found.mean(0), true - true.mean(0)
    u, s, v = np.linalg.svd(true.T @ found)
    flip = np.diag([1, 1, np.sign(np.linalg.det(u @ v))])
    scale = np.trace(np.diag(s) @ flip) / (found**2).sum() if scaled else 1.0
    return np.linalg.norm(scale * found @ (u @ flip @ v).T - true, axis=1)


def test_a_known_rig_gives_one_pose_a_moment_metres_and_smaller_errors(world, tmp_path, capsys):
    scene = world[1]
    alone = mapped(world, tmp_path / "alone")
    assert main([*command(world, tmp_path / "rig", write_rig(tmp_path / "rig.json")), "refine_keypoints=false"]) == 0
    said = capsys.readouterr().out
    assert "15 of 15 images registered" in said
    assert "the map is consistent" in said
    model = load_model(tmp_path / "rig")
    assert (model.num_reg_frames(), model.num_rigs()) == (FRAMES, 1)
    poses = model_poses(model)
    for frame in range(FRAMES):
        left = pycolmap.Rigid3d(poses[f"left/{frame}.png"])
        for prefix in PREFIXES[1:]:
            relative = (pycolmap.Rigid3d(poses[f"{prefix}{frame}.png"]) * left.inverse()).matrix()
            assert np.abs(relative - cam_from_rig(prefix)).max() < 1e-9  # what was given holds
    assert has_metres(tmp_path / "rig")
    assert read_rig_file(tmp_path / "rig" / "rig.json")[0].in_metres
    assert not has_metres(tmp_path / "alone")
    assert position_errors(model, scene, scaled=False).mean() < 0.008  # a pixel is 12 mm at the points' distance
    assert position_errors(model, scene).mean() < 0.7 * position_errors(alone.model, scene).mean()


def test_an_unknown_rig_is_estimated_and_written_for_others(world, tmp_path):
    scene = world[1]
    result = mapped(world, tmp_path / "rig", rig=write_rig(tmp_path / "rig.json", known=False))
    assert result.model.num_reg_frames() == FRAMES
    assert not has_metres(tmp_path / "rig")  # only the truth knows them
    assert position_errors(result.model, scene).mean() < 0.01
    (found,) = read_rig_file(tmp_path / "rig" / "rig.json")
    right = found.cameras[2]
    assert right.params[0] == pytest.approx(580, rel=0.01)
    true = pycolmap.Rigid3d(cam_from_rig("right/"))
    turned = right.cam_from_rig.rotation * true.rotation.inverse()
    assert np.degrees(turned.angle()) < 0.1
    middle = [np.asarray(pose.inverse().translation) for pose in (found.cameras[1].cam_from_rig, right.cam_from_rig)]
    assert np.linalg.norm(middle[1] - 2 * middle[0]) < 0.03 * np.linalg.norm(middle[1])  # they stand in a row
    assert sum("was found to stand at" in line for line in result.remarks) == 2
    configs = pycolmap.read_rig_config(tmp_path / "rig" / "rig.json")  # COLMAP's own reader
    assert [camera.image_prefix for camera in configs[0].cameras] == list(PREFIXES)
    assert np.allclose(configs[0].cameras[2].cam_from_rig.matrix(), right.cam_from_rig.matrix())
    assert not found.in_metres
    again = mapped(world, tmp_path / "again", rig=tmp_path / "rig" / "rig.json")
    assert again.model.num_reg_frames() == FRAMES
    assert not has_metres(tmp_path / "again")  # what was found without metres brings none to another map
    assert not read_rig_file(tmp_path / "again" / "rig.json")[0].in_metres


def test_half_of_a_rig_known_gives_the_unit_of_the_rest(world, tmp_path):
    entries = [rig_entry("left/"), rig_entry("middle/"), rig_entry("right/", known=False)]
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": entries}]))
    model = load_model(write_model(world[1], tmp_path / "model"))
    model.transform(pycolmap.Sim3d(7.0, pycolmap.Rotation3d(), np.array([1.0, 2.0, 3.0])))  # in a unit of its own
    (found,) = estimate_rigs(model, read_rig_file(tmp_path / "rig.json"))
    assert np.abs(found.cameras[2].cam_from_rig.matrix() - cam_from_rig("right/")).max() < 1e-9


def test_a_wrong_moment_does_not_count(world, tmp_path):
    scene = copy.deepcopy(world[1])
    scene.poses["right/1.png"] = look_at(np.array([9.0, 1, 2]), np.zeros(3))
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": [rig_entry(p, known=False) for p in PREFIXES]}]))
    (found,) = estimate_rigs(load_model(write_model(scene, tmp_path / "model")), read_rig_file(tmp_path / "rig.json"))
    assert np.abs(found.cameras[2].cam_from_rig.matrix() - cam_from_rig("right/")).max() < 1e-9


def test_a_camera_that_no_map_shows_beside_the_reference_is_said(world, tmp_path):
    model = load_model(write_model(world[1], tmp_path / "model", [n for n in world[1].names if n < "right"]))
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": [rig_entry(p, known=False) for p in PREFIXES]}]))
    with pytest.raises(ReconstructionError, match="where right/ stands in its rig cannot be estimated"):
        estimate_rigs(model, read_rig_file(tmp_path / "rig.json"))


def test_intrinsics_of_the_file_are_taken_and_other_images_stay_alone(world, tmp_path):
    rigs = read_rig_file(write_rig(tmp_path / "rig.json", intrinsics=True, prefixes=PREFIXES[:2]))
    names = world[1].names
    create_from_images(tmp_path / "database.db", world[0] / "images", names, CameraSettings(mode="per_image"), rigs)
    with pycolmap.Database.open(tmp_path / "database.db") as database:
        cameras = sorted(camera.params[0] for camera in database.read_all_cameras())
        frames = database.read_all_frames()
    assert cameras[:2] == [560, 570]
    assert len(cameras) == 2 + FRAMES
    assert sorted(len(frame.data_ids) for frame in frames) == [1] * FRAMES + [2] * FRAMES


LEFT = {"image_prefix": "left/", "ref_sensor": True}
ZERO = {"cam_from_rig_translation": [0, 0, 0]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot read the rig file"),
        ({"cameras": []}, "is no rig file of COLMAP"),
        ([{"camera": []}], "has no list of cameras"),
        ([{"cameras": [LEFT], "unit": "feet"}], 'unit is "metres" or "unknown", not \'feet\''),
        ([{"cameras": [{"image_prefix": "left/"}]}], 'needs one camera with "ref_sensor": true'),
        ([{"cameras": [LEFT, {**LEFT, "image_prefix": "b/"}]}], 'needs one camera with "ref_sensor": true'),
        ([{"cameras": [LEFT, {"prefix": "right/"}]}], "camera 2 has prefix: known are"),
        ([{"cameras": [LEFT, {"image_prefix": ""}]}], "camera 2 has no image_prefix"),
        ([{"cameras": [LEFT, {"image_prefix": "left/in/"}]}], "names that begin with left/in/ and left/"),
        ([{"cameras": [LEFT, {"image_prefix": "b/", "cam_from_rig_rotation": [1, 0, 0, 0]}]}], "or neither"),
        (
            [{"cameras": [LEFT, {"image_prefix": "b/", "cam_from_rig_rotation": [9, 0, 0, 0], **ZERO}]}],
            "a unit quaternion",
        ),
        ([{"cameras": [{**LEFT, "cam_from_rig_rotation": [1, 0, 0, 0], **ZERO}]}], "no cam_from_rig"),
        ([{"cameras": [{**LEFT, "camera_model_name": "PINHOLE", "camera_params": [1, 2]}]}], "PINHOLE takes fx, fy, cx, cy"),
        ([{"cameras": [{**LEFT, "camera_model_name": "PINHOL", "camera_params": [1, 2]}]}], "did you mean PINHOLE"),
        ([{"cameras": [{**LEFT, "camera_params": [1, 2]}]}], "or neither"),
        ([{"cameras": [LEFT, {"image_prefix": "b/", "cam_from_rig_rotation": "x"}]}], "is a list of numbers"),
    ],
)  # fmt: skip
def test_a_rig_file_that_is_none_says_what_is_wrong(tmp_path, content, said):
    path = tmp_path / "rig.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(FormatError) as error:
        read_rig_file(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("prefix", "said"),
    [("rear/", "has a camera rear/, and none of the images has a name that begins so"), ("right/4", "no two of")],
)
def test_cameras_without_images_are_one_line(world, tmp_path, capsys, prefix, said):
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": [LEFT, {"image_prefix": prefix}]}]))
    assert main(command(world, tmp_path / "out", tmp_path / "rig.json")) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")
    assert said in line
    assert not (tmp_path / "out").exists()


def test_a_photograph_of_a_rigs_camera_is_added_to_its_map(tmp_path):
    scene = rig_scene(frames=5, points=300, prefixes=PREFIXES[:2])
    names, new = sorted(scene.poses), "left/4.png"
    old = [name for name in names if not name.endswith("/4.png")]
    pairs, added = [(a, b) for k, a in enumerate(old) for b in old[:k]], [(new, name) for name in old]
    images, features = write_images(scene, tmp_path / "images", names), write_features(scene, tmp_path / "f.h5", names)
    rig = write_rig(tmp_path / "rig.json", True, True, PREFIXES[:2])
    files = write_pairs(tmp_path / "p.txt", pairs), features, write_matches(scene, tmp_path / "m.h5", pairs)
    model = reconstruct(images, *files, tmp_path / "sfm", SETTINGS, rig=rig).model
    camera = next(image.camera for image in model.images.values() if image.name == "left/0.png")
    files = write_pairs(tmp_path / "q.txt", added), features, write_matches(scene, tmp_path / "n.h5", added)
    found = extend_model(tmp_path / "sfm", images, *files, {new: camera}, tmp_path / "more").model
    assert {found.image(i).name for i in found.reg_image_ids()} == {*old, new}
    assert sorted(rig.num_sensors() for rig in found.rigs.values()) == [1, 2]
