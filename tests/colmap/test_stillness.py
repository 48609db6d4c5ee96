"""What stands still in the pictures (a background behind a turntable) finds no cameras."""

import numpy as np
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_pairs

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.models import ReconstructionError, model_poses
from pdc_sfm.colmap.mapping.evidence import weigh_pairs
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.remarks import STOOD_STILL
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
