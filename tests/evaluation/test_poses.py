"""Pose measures against hand-computed values."""

import numpy as np
import pytest

from pdc_sfm.evaluation.measures import poses


def rotation(axis, degrees):
    """Rodrigues' formula."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    a = np.radians(degrees)
    return np.eye(3) + np.sin(a) * k + (1 - np.cos(a)) * k @ k


def pose(center, axis=(0, 0, 1), degrees=0.0):
    r = rotation(axis, degrees)
    return np.c_[r, -r @ np.asarray(center, float)]


@pytest.mark.parametrize("degrees", [0.0, 1e-6, 0.037, 2.0, 90.0, 179.9, 180.0])
def test_angle_between_rotations_is_the_angle_of_their_difference(degrees):
    base = rotation((1, 2, 3), 40)
    turned = base @ rotation((3, -1, 1), degrees)
    assert poses.rotation_angle(base, turned) == pytest.approx(degrees, abs=1e-9, rel=1e-6)


def test_angle_between_directions_ignores_length_and_tells_opposites():
    assert poses.vector_angle(np.array([2.0, 0, 0]), np.array([0, 5.0, 0])) == pytest.approx(90)
    assert poses.vector_angle(np.array([2.0, 0, 0]), np.array([-1.0, 0, 0])) == pytest.approx(180)


def test_position_error_is_measured_between_centers_not_translations():
    # both cameras stand at (3, 4, 5); only their rotation differs
    distance, angle = poses.pose_error(pose((3, 4, 5), degrees=30), pose((3, 4, 5)))
    assert distance == pytest.approx(0, abs=1e-12)
    assert angle == pytest.approx(30)


def test_recall_needs_both_position_and_rotation_and_counts_missing_queries():
    true = {name: pose((0, 0, 0)) for name in "abcd"}
    estimated = {
        "a": pose((0.2, 0, 0), degrees=1.9),  # within (0.25, 2)
        "b": pose((0.1, 0, 0), degrees=3.0),  # near, but turned: only (0.5, 5)
        "c": pose((4.9, 0, 0), degrees=0.0),  # only (5, 10); d was not localized
        "x": pose((0, 0, 0)),  # not a query with a known pose
    }
    assert poses.localization_recall(estimated, true) == (0.25, 0.5, 0.75)
    assert poses.localization_recall({}, true) == (0, 0, 0)


def test_recall_thresholds_are_inclusive():
    assert poses.localization_recall({"a": pose((0.25, 0, 0))}, {"a": pose((0, 0, 0))})[0] == 1.0


def test_alignment_recovers_a_similarity_and_never_a_reflection():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(10, 3))
    r = rotation((1, 1, 0), 100)
    found = poses.align(points, 2.5 * points @ r.T + (1, 2, 3))
    assert found.scale == pytest.approx(2.5)
    np.testing.assert_allclose(found.rotation, r, atol=1e-12)
    np.testing.assert_allclose(found.translation, (1, 2, 3), atol=1e-12)
    assert np.linalg.det(poses.align(points, points * (1, 1, -1)).rotation) == pytest.approx(1)


def test_reconstruction_in_another_frame_and_scale_has_no_error():
    rng = np.random.default_rng(1)
    true = {str(i): pose(rng.normal(size=3), rng.normal(size=3), 20 * i) for i in range(6)}
    turn, scale, shift = rotation((0, 1, 1), 70), 0.1, np.array([5.0, 6, 7])
    moved = {}
    for name, p in true.items():  # the same cameras in a world x' = scale * turn x + shift
        r = p[:, :3] @ turn.T
        moved[name] = np.c_[r, -r @ (scale * turn @ poses.camera_center(p) + shift)]
    errors = poses.reconstruction_errors(moved, true)
    assert errors.degrees.max() < 1e-6
    assert errors.distances.max() < 1e-9


def test_reconstruction_error_is_relative_to_the_largest_camera_distance():
    true = {"a": pose((0, 0, 0)), "b": pose((10, 0, 0)), "c": pose((0, 5, 0)), "d": pose((3, 3, 1))}
    turned = {**true, "b": pose((10, 0, 0), degrees=2)}
    errors = poses.reconstruction_errors(turned, true)
    assert errors.extent == pytest.approx(np.sqrt(125))
    assert dict(zip(errors.names, errors.degrees))["b"] == pytest.approx(2)
    far = poses.reconstruction_errors({**true, "d": pose((3, 3, 1.5))}, true)
    np.testing.assert_allclose(far.percents, 100 * far.distances / np.sqrt(125))
    assert 0 < far.distances.max() < 0.5


def test_relative_pose_error_ignores_the_scale_of_translation():
    first, second = pose((1, 0, 0)), pose((3, 0, 0), degrees=0)
    assert poses.relative_pose_error(first, second) == pytest.approx((0, 0), abs=1e-9)
    assert poses.relative_pose_error(pose((0, 1, 0)), second)[1] == pytest.approx(90)


def test_of_a_camera_that_only_turned_the_rotation_alone_is_judged():
    error = poses.relative_pose_error(pose((1, 0, 0), degrees=3), pose((0, 0, 0), degrees=0))
    assert error == pytest.approx((3, 0))
