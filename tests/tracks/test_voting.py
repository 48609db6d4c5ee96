"""hloc's rule, vectorized, against a plain dictionary version of the same rule."""

import numpy as np
import pytest
from dictionary_rule import aggregate_by_dictionary
from hypothesis import given
from hypothesis import strategies as st

from pdc_sfm.errors import SettingsError
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.tracks.spatial import RadiusIndex
from pdc_sfm.tracks.voting import link, strongest_first, vote_keypoints


def random_matches(rng, count, size=(160, 120)):
    points = rng.uniform(0, size, (2, count, 2)).astype(np.float32)
    return RawMatches(points[0], points[1], rng.uniform(0.1, 0.57, count))


@pytest.mark.parametrize(("max_error", "cell_size", "top"), [(2, 8, 8192), (2, 8, 50), (1, 1, 300), (1.5, 5.5, 8192)])
def test_keypoints_and_matches_are_those_of_the_dictionary(max_error, cell_size, top):
    rng = np.random.default_rng(0)
    raw = {pair: random_matches(rng, 500) for pair in [("a", "b"), ("a", "c"), ("b", "c")]}
    expected_keypoints, expected_matches = aggregate_by_dictionary(raw, max_error, cell_size, top)
    keypoints = {}
    for name in "abc":
        sides = [
            ((m if pair[0] == name else m.swapped()).keypoints0, m.scores) for pair, m in raw.items() if name in pair
        ]
        points, scores = (np.concatenate(part) for part in zip(*sides))
        keypoints[name] = vote_keypoints(points, scores, max_error, cell_size)[0].best(top)
        np.testing.assert_array_equal(keypoints[name].points, expected_keypoints[name][0])
        np.testing.assert_array_equal(keypoints[name].scores, expected_keypoints[name][1])
    for (a, b), matches in raw.items():
        found, scores = link(matches, *(RadiusIndex(keypoints[name].points, max_error) for name in (a, b)))
        assert {(*pair, score) for pair, score in zip(found.tolist(), scores.tolist())} == expected_matches[a, b]


def test_a_keypoint_is_the_best_bin_of_its_cell_and_has_its_sum():
    # one cell of 8 pixels about 7.5 (from 3.5 to 11.5); bins of 2 about 5.5 and 9.5
    points = np.array([[5.4, 7.5], [5.6, 7.4], [9.5, 7.5]], np.float32)
    keypoints, own = vote_keypoints(points, np.array([0.3, 0.3, 0.5]), 2, 8)
    np.testing.assert_array_equal(keypoints.points, [[5.5, 7.5]])
    np.testing.assert_allclose(keypoints.scores, [0.6])
    np.testing.assert_array_equal(own, [0, 0, 0])


@given(st.lists(st.sampled_from([0.0, 1e-30, 0.25, 0.5, 3.0]) | st.floats(0, 2.0**99, width=32, allow_subnormal=False)))
def test_the_strongest_come_first_and_of_equals_the_earlier(scores):
    scores = np.array(scores, np.float32)
    np.testing.assert_array_equal(strongest_first(scores), np.argsort(-scores, kind="stable"))


def test_with_sizes_zero_distinct_points_stay_as_they_are():
    points = np.array([[1.25, 2.5], [1.25, 2.5], [-0.0, 0.0], [0.0, 0.0]], np.float32)
    keypoints, own = vote_keypoints(points, np.ones(4), 0, 0)
    np.testing.assert_array_equal(keypoints.points, [[1.25, 2.5], [0, 0]])
    np.testing.assert_array_equal(keypoints.scores, [2, 2])
    np.testing.assert_array_equal(own, [0, 0, 1, 1])


def test_no_observations_give_no_keypoints():
    keypoints, own = vote_keypoints(np.zeros((0, 2), np.float32), np.zeros(0), 2, 8)
    assert (len(keypoints), keypoints.points.shape, len(own)) == (0, (0, 2), 0)
    matches, scores = link(RawMatches.empty(), RadiusIndex(keypoints.points, 2), RadiusIndex(keypoints.points, 2))
    assert (matches.shape, matches.dtype, scores.shape) == ((0, 2), np.int32, (0,))


@pytest.mark.parametrize("wrong", [{"max_error": 0}, {"cell_size": -1}, {"max_keypoints": 0}])
def test_impossible_settings_are_named(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        TrackSettings(**wrong)
