"""Which points are near which: as by comparing each with all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdc_sfm.tracks.spatial import GridKNN, RadiusIndex, far_from, radius_nms


def distances(points, others):
    return np.linalg.norm(points[:, None] - others, axis=2)


def one_after_the_other(points, weights, distance):
    taken: list[int] = []
    for index in np.argsort(-weights, kind="stable"):
        if not taken or distances(points[[index]], points[taken]).min() > distance:
            taken.append(index)
    return sorted(taken)


def test_who_is_beaten_beats_nobody():
    points, weights = np.array([[0, 0], [3, 0], [6, 0.0]]), np.array([3, 2, 1.5])
    np.testing.assert_array_equal(radius_nms(points, weights, 4), [0, 2])


@pytest.mark.parametrize("crowd", [0, 60, 400])
def test_the_strongest_are_those_of_taking_one_after_the_other_also_where_matches_collapse(crowd):
    rng = np.random.default_rng(crowd)
    points = np.concatenate(
        (rng.uniform(0, 60, (200, 2)), rng.normal(30, 1.5, (crowd, 2)), np.full((crowd // 4, 2), 9))
    )
    weights = rng.integers(0, 50, len(points))  # of equals the first
    np.testing.assert_array_equal(radius_nms(points, weights, 4), one_after_the_other(points, weights, 4))


@pytest.mark.parametrize("count", [30, 300])
def test_at_distance_zero_one_of_each_place_stays(count):
    places = np.array([[1, 1], [500, 2], [1, 1.001]])
    points, weights = np.repeat(places, count, 0), np.arange(3 * count)
    np.testing.assert_array_equal(radius_nms(points, weights, 0), np.arange(1, 4) * count - 1)
    assert len(radius_nms(points[:count], weights[:count], 0)) == 1


def test_points_far_from_others_also_outside_of_them_all():
    rng = np.random.default_rng(0)
    others, points = rng.uniform(0, 100, (300, 2)), rng.uniform(-30, 130, (1000, 2)).astype(np.float32)
    far = np.flatnonzero(distances(points, others).min(1) > 3)
    np.testing.assert_array_equal(far_from(others, points, 3), far)
    np.testing.assert_array_equal(far_from(others[:0], points, 3), np.arange(1000))
    assert len(far_from(others, points[:0], 3)) == 0


def two_grids(rng, step=5.0, size=160):
    """Matches as both directions of a pair give them: a grid of this image, and one of the other, turned and scaled."""
    grid = np.stack(np.meshgrid(np.arange(0, size, step), np.arange(0, size, step)), -1).reshape(-1, 2)
    wide = np.concatenate([np.add(grid, (i, j)) for i in (-size, 0, size) for j in (-size, 0, size)])
    turned = wide @ np.array([[0.95, 0.3], [-0.3, 0.95]]) + rng.normal(0, 0.3, wide.shape)
    return np.concatenate((grid, turned[((turned >= 0) & (turned < size)).all(1)])).astype(np.float32)


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


def test_the_nearest_come_first_and_are_those_of_comparing_with_all(rng):
    matches, points = two_grids(rng), rng.uniform(10, 150, (500, 2)).astype(np.float32)
    around = GridKNN(matches, 20)
    index, (x, y) = around.nearest(points, 12)
    true = np.sort(np.linalg.norm(points[:, None] - matches, axis=2), 1)[:, :12].T
    within = true < around.side  # what is farther away may lie beyond the squares about the point
    assert within[:6].mean() > 0.95
    found = np.hypot(x, y)
    np.testing.assert_allclose(found[within], true[within], rtol=1e-4, atol=1e-4)
    offset = np.stack((x, y), -1)
    np.testing.assert_allclose((matches[index] - points)[within], offset[within], atol=1e-4)


def test_where_few_are_near_the_rest_is_too_far_to_count(rng):
    matches = np.concatenate((two_grids(rng), [[400, 400], [402, 401]])).astype(np.float32)
    around = GridKNN(matches, 20)
    index, (x, y) = around.nearest(np.array([[400.5, 400]]), 5)
    assert set(index.ravel()) == {len(matches) - 2, len(matches) - 1}
    assert np.hypot(x, y)[2:].min() > 50 * around.side


def test_all_points_within_a_square_of_a_match_may_have_neighbors_and_none_far_away(rng):
    matches, points = two_grids(rng), rng.uniform(-200, 400, (5000, 2))
    around = GridKNN(matches, 20)
    away = np.linalg.norm(points[:, None] - matches, axis=2).min(1)
    near = around.some_near(points)
    assert np.isin(np.flatnonzero(away < around.side), near).all()
    assert away[near].max() < 3 * around.side


def test_matches_at_one_place_and_one_far_off_take_no_more_room_than_others():
    matches = np.concatenate((np.ones((1000, 2)), [[1e6, 1e6]])).astype(np.float32)
    around = GridKNN(matches, 20)
    np.testing.assert_array_equal(around.nearest(matches[-1:], 1)[0], [[1000]])
    np.testing.assert_array_equal(around.nearest(matches[:1], 1)[1], np.zeros((2, 1, 1)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.5, 2.0, 4.0]), st.sampled_from([1.0, 40.0, 4000.0]))
def test_the_nearest_keypoint_is_that_of_all_distances(seed, distance, extent):
    rng = np.random.default_rng(seed)
    keypoints = rng.uniform(0, extent, (rng.integers(1, 90), 2)).astype(np.float32)
    points = np.concatenate((keypoints[:20], rng.uniform(-5, extent + 5, (60, 2)))).astype(np.float32)
    points[::3] += rng.normal(0, distance, points[::3].shape).astype(np.float32)
    away = np.linalg.norm(points[:, None].astype(np.float64) - keypoints[None], axis=2)
    expected = np.where(away.min(1) <= distance, away.argmin(1), -1)
    np.testing.assert_array_equal(RadiusIndex(keypoints, distance).of(points), expected)


def test_of_keypoints_equally_near_the_first_is_taken_however_far_they_spread():
    keypoints = np.array([[0, 0], [20_000, 20_000], [0, 0]], np.float32)
    np.testing.assert_array_equal(RadiusIndex(keypoints, 0.5).of(keypoints), [0, 1, 0])


def test_crowded_and_far_spread_keypoints_are_found_too():
    keypoints = np.concatenate((np.random.default_rng(0).uniform(0, 0.5, (500, 2)), [[1e7, 1e7]])).astype(np.float32)
    np.testing.assert_array_equal(RadiusIndex(keypoints, 0.01).of(keypoints), np.arange(501))
    np.testing.assert_array_equal(RadiusIndex(keypoints[:500], 0.01).of(keypoints[:500]), np.arange(500))
