"""The relative pose of two cameras is found from their matches."""

import numpy as np
import pytest

from pdc_sfm.colmap.localization.relative_pose import RelativePoseSettings, estimate_relative_pose
from pdc_sfm.errors import SettingsError

INTRINSICS0 = np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]])
INTRINSICS1 = np.array([[800.0, 0, 400], [0, 790, 310], [0, 0, 1]])


def matches(count=300, outliers=0, noise=0.0, seed=0):
    """Points seen by two cameras with different intrinsics; the first `outliers` matches are random."""
    rng = np.random.default_rng(seed)
    world = np.c_[rng.uniform(-2, 2, (count, 2)), rng.uniform(4, 9, count)]
    angle = np.radians(12)
    rotation = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    translation = np.array([-0.8, 0.1, 0.2])
    views = []
    for points, intrinsics in ((world, INTRINSICS0), (world @ rotation.T + translation, INTRINSICS1)):
        pixels = points @ intrinsics.T
        views.append(pixels[:, :2] / pixels[:, 2:] + rng.normal(scale=noise, size=(count, 2)) * (noise > 0))
    views[1][:outliers] = rng.uniform(0, 600, (outliers, 2))
    return *views, np.c_[rotation, translation / np.linalg.norm(translation)]


@pytest.mark.parametrize("method", ["ransac", "magsac"])
def test_exact_matches_give_the_exact_pose(method):
    points0, points1, true = matches()
    found = estimate_relative_pose(points0, points1, INTRINSICS0, INTRINSICS1, RelativePoseSettings(method=method))
    np.testing.assert_allclose(found.cam1_from_cam0, true, atol=1e-5)
    assert found.inliers.all()


@pytest.mark.parametrize("method", ["ransac", "magsac"])
def test_half_of_the_matches_may_be_wrong(method):
    points0, points1, true = matches(outliers=150, noise=0.3)
    found = estimate_relative_pose(points0, points1, INTRINSICS0, INTRINSICS1, RelativePoseSettings(method=method))
    np.testing.assert_allclose(found.cam1_from_cam0, true, atol=0.05)
    assert found.inliers[150:].mean() > 0.5
    assert found.inliers[:150].mean() < 0.1


def test_refinement_uses_all_that_agree():
    """Of noise of 0.3 px in 3,000 matches about 0.3 / sqrt(3000) remains, where five points keep all of theirs."""
    points0, points1, true = matches(4000, outliers=1000, noise=0.3)
    plain, refined = (
        estimate_relative_pose(points0, points1, INTRINSICS0, INTRINSICS1, RelativePoseSettings(refine=refine))
        for refine in (False, True)
    )
    error = [np.abs(found.cam1_from_cam0 - true).max() for found in (plain, refined)]
    assert error[1] < 1e-3
    assert error[1] < error[0] / 3
    assert refined.inliers[1000:].mean() > 0.85
    assert refined.inliers[:1000].mean() < 0.05
    np.testing.assert_allclose(np.linalg.norm(refined.cam1_from_cam0[:, 3]), 1)


def test_refinement_of_exact_matches_changes_nothing():
    points0, points1, true = matches(50)
    found = estimate_relative_pose(points0, points1, INTRINSICS0, INTRINSICS1, RelativePoseSettings(refine=True))
    np.testing.assert_allclose(found.cam1_from_cam0, true, atol=1e-5)


def test_the_threshold_is_in_pixels():
    points0, points1, _ = matches(noise=2.0)
    loose, tight = (
        estimate_relative_pose(points0, points1, INTRINSICS0, INTRINSICS1, RelativePoseSettings(threshold=t))
        for t in (8.0, 0.5)
    )
    assert loose.inliers.mean() > 0.9 > 0.5 > tight.inliers.mean()


@pytest.mark.parametrize("count", [0, 1, 4])
def test_fewer_than_five_matches_have_no_pose(count):
    points0, points1, _ = matches()
    assert estimate_relative_pose(points0[:count], points1[:count], INTRINSICS0, INTRINSICS1) is None


def test_identical_points_do_not_crash():
    same = np.full((20, 2), 100.0)
    found = estimate_relative_pose(same, same, INTRINSICS0, INTRINSICS0)
    assert found is None or found.inliers.shape == (20,)


def test_settings_are_checked():
    with pytest.raises(SettingsError, match="threshold"):
        RelativePoseSettings(threshold=0)
