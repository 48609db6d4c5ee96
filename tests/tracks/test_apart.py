"""Points that keep a distance: as by taking the strongest first and comparing it with all."""

import numpy as np
import pytest

from pdc_sfm.tracks.apart import far_from, radius_nms


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
