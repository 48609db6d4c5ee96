"""The matches nearest to a point: those of comparing it with all, as far as its square's neighbors go."""

import numpy as np
import pytest

from pdc_sfm.tracks.around import GridKNN


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
