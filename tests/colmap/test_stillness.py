"""What stands still in the pictures (a background behind a turntable) finds no cameras."""

import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_pairs

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.models import ReconstructionError, model_poses
from pdc_sfm.colmap.mapping.evidence import weigh_pairs
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.remarks import STOOD_STILL
from pdc_sfm.colmap.mapping.verification import stationary
from pdc_sfm.evaluation.measures.poses import reconstruction_errors

NAMES = [f"{number}.png" for number in range(5)]
CAMERA = CameraSettings(model="PINHOLE", params=(500, 500, 320, 240), mode="single", refine=False)
QUICK = ReconstructionSettings(camera=CAMERA, refine_keypoints=False, threads=1)


def before_a_background(scene, count):
    """The scene's keypoints and so many more that stand in one place of all pictures."""
    rng = np.random.default_rng(1)
    fixed = rng.uniform((5, 5), (635, 475), (count, 2)).astype(np.float32)
    for name in scene.names:
        scene.keypoints[name] = np.r_[scene.keypoints[name], fixed + rng.normal(0, 0.3, fixed.shape).astype(np.float32)]
        scene.visible[name] = np.r_[scene.visible[name], 10**6 + np.arange(count)]
    return scene


def files(scene, folder):
    return dict(
        images=write_images(scene, folder / "images"),
        pairs=write_pairs(folder / "pairs.txt", scene.pairs()),
        features=write_features(scene, folder / "features.h5"),
        matches=write_matches(scene, folder / "matches.h5", scene.pairs()),
        output=folder / "sfm",
    )


def test_what_stands_still_before_a_turntable_finds_no_cameras(tmp_path):
    scene = before_a_background(
        make_scene(NAMES, points=800, vary=0, model="PINHOLE", params=(500, 500, 320, 240)), 2000
    )
    result = reconstruct(**files(scene, tmp_path), settings=QUICK)
    found = model_poses(result.model)
    assert len(found) == len(NAMES)
    assert reconstruction_errors(found, scene.poses).degrees.max() < 1.0
    assert STOOD_STILL in result.remarks
    # 2,000 places of the background are no part of what pairs could have covered: 800 points are
    assert max(pair.occupied for pair in weigh_pairs(result.model, tmp_path / "sfm" / "database.db")) <= 800


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_what_stands_still_turns_with_a_picture_that_is_stored_turned(quarters):
    rng = np.random.default_rng(0)
    fixed, moving = rng.uniform((5, 5), (635, 475), (2, 300, 2))
    shift = rng.uniform(20, 60, (300, 1)) * rng.choice([-1, 1], (300, 2))
    second = np.r_[fixed, moving + shift]
    size = (640, 480)
    for _ in range(quarters):  # a quarter turn clockwise: what was left is up
        second, size = np.c_[size[1] - second[:, 1], second[:, 0]], size[::-1]
    cameras = [
        pycolmap.Camera(model="SIMPLE_PINHOLE", width=w, height=h, params=(500, w / 2, h / 2))
        for w, h in ((640, 480), size)
    ]
    still = stationary((np.r_[fixed, moving], second), np.c_[np.arange(600), np.arange(600)], 4.0, tuple(cameras))
    assert still[:300].all()
    assert not still[300:].any()


def turn_half(scene, name):
    """An image of a scene upside down."""
    scene.keypoints[name] = np.array([640, 480], np.float32) - 1 - scene.keypoints[name]
    scene.poses[name] = np.diag([-1.0, -1.0, 1.0]) @ scene.poses[name]


def test_a_background_is_known_in_pictures_upside_down_too(tmp_path):
    scene = before_a_background(
        make_scene(NAMES, points=800, vary=0, model="PINHOLE", params=(500, 500, 320, 240)), 2000
    )
    for name in NAMES[1::2]:  # so that fewer than half of the pairs are of pictures turned alike
        turn_half(scene, name)
    result = reconstruct(**files(scene, tmp_path), settings=QUICK)
    assert STOOD_STILL in result.remarks
    found = model_poses(result.model)
    assert len(found) == len(NAMES)
    assert reconstruction_errors(found, scene.poses).degrees.max() < 1.0


def test_a_few_still_points_are_kept(tmp_path):
    scene = before_a_background(make_scene(NAMES, points=800, vary=0, model="PINHOLE", params=(500, 500, 320, 240)), 50)
    result = reconstruct(**files(scene, tmp_path), settings=QUICK)
    assert STOOD_STILL not in result.remarks
    assert result.model.num_reg_images() == len(NAMES)


def test_pictures_in_which_nothing_moves_say_so(tmp_path):
    scene = make_scene(NAMES[:3], points=10, vary=0)
    for name in scene.names:
        scene.keypoints[name], scene.visible[name] = np.zeros((0, 2), np.float32), np.zeros(0, int)
    with pytest.raises(ReconstructionError, match="matches that move and agree"):
        reconstruct(**files(before_a_background(scene, 500), tmp_path), settings=QUICK)


def test_a_thing_of_two_equal_sides_before_a_background_is_not_mapped_in_silence(tmp_path):
    """Four views of one side, then four of the other, which show the same: nothing moves between a view and its twin."""
    names = [f"{number}.png" for number in range(8)]
    scene = make_scene(names, points=800, vary=0, model="PINHOLE", params=(500, 500, 320, 240))
    rng = np.random.default_rng(0)
    for first, second in zip(names[:4], names[4:]):
        scene.visible[second], scene.poses[second] = scene.visible[first], scene.poses[first]
        noise = rng.normal(0, 0.2, scene.keypoints[first].shape).astype(np.float32)
        scene.keypoints[second] = scene.keypoints[first] + noise
    result = reconstruct(**files(before_a_background(scene, 2000), tmp_path), settings=QUICK)
    assert STOOD_STILL in result.remarks
    assert result.verdict.kind == "doubtful"
    assert "stand at exactly one place, as 8 images do" in result.verdict.reasons[0]
    assert result.verdict.pairs[0][0] == "laid over each other"
    assert set(names) == set(result.verdict.images)
