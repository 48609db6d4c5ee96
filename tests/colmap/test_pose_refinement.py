"""The weighted pose refinement: COLMAP's with equal weights, better when some points are known to be worse."""

import numpy as np
import pycolmap
import pytest
from projections import make_scene

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.localization.pose_refinement import inverse_variance, refine_pose, refine_rig_pose
from pdc_sfm.evaluation.measures.poses import pose_error

LOSS_SCALE = 1.0  # COLMAP's own


@pytest.fixture
def noisy():
    """A camera, its true pose, observations with noise of 0.2 px (first half) and 3 px, and a start nearby."""
    scene = make_scene(["a"], points=400)
    rng = np.random.default_rng(0)
    count = len(scene.visible["a"])
    sigma = np.where(np.arange(count) < count // 2, 0.2, 3.0)
    keypoints = scene.keypoints["a"] + 0.5 + rng.normal(size=(count, 2)) * sigma[:, None]
    points = scene.points[scene.visible["a"]]
    start = np.array(scene.poses["a"])
    start[:, 3] += 0.05
    return scene.cameras["a"], scene.poses["a"], keypoints, points, sigma, pycolmap.Rigid3d(start)


def refine(noisy, weights):
    camera, _, keypoints, points, _, start = noisy
    return refine_pose(start, rays_of(camera, keypoints), points, weights, camera.mean_focal_length(), LOSS_SCALE)


def test_equal_weights_give_colmaps_pose(noisy):
    camera, true, keypoints, points, _, start = noisy
    ours = refine(noisy, np.ones(len(points)))
    options = pycolmap.AbsolutePoseRefinementOptions(gradient_tolerance=1e-8)
    theirs = pycolmap.refine_absolute_pose(start, keypoints, points, np.ones(len(points), bool), camera, options)
    distance, angle = pose_error(ours.matrix(), theirs["cam_from_world"].matrix())
    assert distance < 1e-3  # COLMAP measures in distorted pixels, which are 1 % larger at the border here
    assert angle < 0.01
    assert pose_error(ours.matrix(), true)[0] < 0.01


def test_weights_that_know_the_noise_give_a_better_pose(noisy):
    _, true, _, points, sigma, _ = noisy
    known = pose_error(refine(noisy, 1 / sigma**2).matrix(), true)
    equal = pose_error(refine(noisy, np.ones(len(points))).matrix(), true)
    misled = pose_error(refine(noisy, sigma**2).matrix(), true)
    assert known[0] < misled[0]
    assert known[1] < misled[1]
    assert known[0] < 1.5 * equal[0]


def test_a_perfect_pose_stays(noisy):
    camera, true, _, points, _, _ = noisy
    exact = np.asarray(camera.img_from_cam(points @ true[:, :3].T + true[:, 3]))
    start = pycolmap.Rigid3d(true)
    scales = camera.mean_focal_length(), LOSS_SCALE
    found = refine_pose(start, rays_of(camera, exact), points, np.ones(len(points)), *scales)
    np.testing.assert_allclose(found.matrix(), true, atol=1e-9)


def test_confidence_says_the_variance():
    sigma = np.array([0.3, 1.0, 5.0])
    confidence = (1 - np.exp(-np.sqrt(2) / sigma)) ** 2  # Eq. 7 with R = 1
    np.testing.assert_allclose(inverse_variance(confidence), 1 / sigma**2, rtol=1e-9)
    assert np.isfinite(inverse_variance(np.array([0.0, 1.0]))).all()


def test_a_rig_of_one_camera_is_that_camera_and_of_two_finds_the_pose():
    rng = np.random.default_rng(5)
    points = rng.uniform(-3, 3, (60, 3)) + np.array([0, 0, 8])
    true = pycolmap.Rigid3d(pycolmap.Rotation3d(np.array([0.02, -0.03, 0.01])), np.array([0.1, -0.2, 0.3]))
    start = pycolmap.Rigid3d(pycolmap.Rotation3d(np.array([0.0, 0, 0])), np.array([0.0, 0, 0]))
    weights, focal = np.ones(60), np.full(60, 500.0)
    side = pycolmap.Rigid3d(pycolmap.Rotation3d(np.array([0.0, 0.6, 0.1])), np.array([-0.5, 0.1, 0.2]))
    for second in (pycolmap.Rigid3d(), side):
        poses = [pycolmap.Rigid3d()] * 30 + [second] * 30
        local = np.concatenate([(poses[0] * true) * points[:30], (second * true) * points[30:]])
        turns, shifts = np.stack([p.rotation.matrix() for p in poses]), np.stack([p.translation for p in poses])
        found = refine_rig_pose(start, (turns, shifts), local[:, :2] / local[:, 2:], points, weights, focal, 100.0)
        assert np.abs(found.matrix() - true.matrix()).max() < 1e-6
