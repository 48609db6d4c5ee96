"""Keypoints propagated by the flow: exact places, wrong matches without harm, tracks as long as what is seen."""

import sys

import numpy as np
import pytest

from pdc_sfm.matches.select import concatenate
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.tracks.fusion import PropagatedKeypoints, add_new, confirmed, each_propagated, fuse_tracks, image_order
from pdc_sfm.tracks.propagation import Propagated, column_median, propagate
from pdc_sfm.tracks.voting import VotedKeypoints

AFFINE = np.array([[1.2, 0.1, 5.0], [-0.15, 0.9, 20.0]])


def grid_matches(warp=AFFINE, low=0, high=120, step=4):
    """Matches of a grid of points under an affine map."""
    points = np.stack(np.meshgrid(np.arange(low, high, step), np.arange(low, high, step)), -1).reshape(-1, 2) + 1.5
    return RawMatches(points, points @ warp[:, :2].T + warp[:, 2], np.full(len(points), 0.5))


def source(tracks, points, weights):
    count = len(tracks)
    propagated = Propagated(
        np.arange(count), np.array(points, float), np.full(count, 0.5, np.float32), np.array(weights)
    )
    return PropagatedKeypoints(np.array(tracks), propagated)


def test_points_between_the_matches_are_carried_to_their_exact_place():
    points = np.random.default_rng(0).uniform(5, 110, (200, 2)).astype(np.float32)
    found = propagate(grid_matches(), points, 16)
    np.testing.assert_array_equal(found.index, np.arange(200))
    np.testing.assert_allclose(found.points, points @ AFFINE[:, :2].T + AFFINE[:, 2], atol=0.02)
    np.testing.assert_allclose(found.scores, 0.5)


def test_wrong_matches_among_right_ones_do_no_harm():
    matches, rng = grid_matches(), np.random.default_rng(0)
    wrong = rng.random(len(matches)) < 0.1
    moved = matches.keypoints1 + np.where(wrong[:, None], rng.normal(0, 30, (len(matches), 2)), 0)
    points = rng.uniform(5, 110, (200, 2))
    found = propagate(RawMatches(matches.keypoints0, moved, matches.scores), points, 16)
    error = np.linalg.norm(found.points - points[found.index] @ AFFINE[:, :2].T - AFFINE[:, 2], axis=1)
    assert len(found.index) > 180
    assert np.quantile(error, 0.95) < 0.1


def test_points_away_from_all_matches_stay_behind():
    points = np.array([[60, 60], [140, 60], [60, -12]])
    np.testing.assert_array_equal(propagate(grid_matches(), points, 16).index, [0])


def test_what_becomes_of_a_point_does_not_depend_on_the_other_points():
    rng = np.random.default_rng(0)
    points = rng.uniform(-20, 140, (3000, 2)).astype(np.float32)
    together = propagate(grid_matches(), points, 16)
    alone = [propagate(grid_matches(), points[i : i + 1], 16) for i in range(200)]
    assert [i for i in range(200) if len(alone[i].index)] == together.index[together.index < 200].tolist()
    places = np.concatenate([one.points for one in alone])
    np.testing.assert_allclose(places, together.points[together.index < 200], atol=2e-5)  # float32 of some 100 pixels


def test_all_points_as_near_to_a_match_as_matches_are_to_each_other_are_carried():
    matches, rng = grid_matches(), np.random.default_rng(0)
    points = rng.uniform(-20, 140, (3000, 2)).astype(np.float32)
    away = np.sqrt(((points[:, None] - matches.keypoints0) ** 2).sum(2).min(1))
    np.testing.assert_array_equal(propagate(matches, points, 16).index, np.flatnonzero(away < 4))  # a grid of step 4


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_the_median_by_exchanges_is_that_of_sorting(count):
    values = np.random.default_rng(count).integers(0, 9, (count, 2, 300)).astype(np.float32)
    np.testing.assert_array_equal(column_median(values), np.median(values, 0))


def test_where_two_surfaces_meet_nothing_is_averaged():
    near, far = grid_matches(np.array([[1, 0, 0], [0, 1, 0.0]])), grid_matches(np.array([[1, 0, 40], [0, 1, 0.0]]))
    left = near.keypoints0[:, 0] < 60
    points1 = np.where(left[:, None], near.keypoints1, far.keypoints1)
    found = propagate(RawMatches(near.keypoints0, points1, near.scores), near.keypoints0, 16)
    shift = found.points[:, 0] - near.keypoints0[found.index, 0]
    assert np.minimum(np.abs(shift), np.abs(shift - 40)).max() < 0.5


def test_of_many_matches_at_one_place_a_few_count():
    heap, matches = np.full((500, 2), 61.5), grid_matches()
    heap = RawMatches(heap, heap @ AFFINE[:, :2].T + AFFINE[:, 2], np.full(500, 0.5))
    points = np.random.default_rng(0).uniform(5, 110, (200, 2))
    found = propagate(concatenate(matches, heap), points, 16)
    assert len(found.index) > 190
    np.testing.assert_allclose(found.points, (points @ AFFINE[:, :2].T + AFFINE[:, 2])[found.index], atol=0.02)


def test_tracks_are_made_without_scipy(monkeypatch):
    """Loading it takes as long as the tracks of a dozen pairs."""
    for name in ("scipy", "scipy.spatial"):
        monkeypatch.setitem(sys.modules, name, None)
    matches = grid_matches()
    propagated = propagate(matches, matches.keypoints0, 16)
    image = fuse_tracks([PropagatedKeypoints(propagated.index, propagated)], 2)
    new = VotedKeypoints(np.concatenate((matches.keypoints1, [[-9, -9]])), np.append(matches.scores, 1))
    assert len(add_new(image, new, 1000, 2, None)) == len(matches) + 1


def test_too_few_matches_propagate_nothing():
    matches = grid_matches().select(np.arange(7))
    assert len(propagate(matches, matches.keypoints0, 16).index) == 0
    assert len(propagate(RawMatches.empty(), np.zeros((3, 2)), 16).index) == 0


def test_a_track_lies_where_most_of_what_is_propagated_agrees():
    placed = fuse_tracks(
        [
            source([3, 5], [[10, 10], [50, 50]], [1, 1]),
            source([3], [[10.4, 10]], [1]),
            source([3], [[18, 10]], [1]),
        ],
        4,
    )
    np.testing.assert_array_equal(placed.tracks, [3, 5])
    np.testing.assert_allclose(placed.points, [[10.2, 10], [50, 50]], atol=0.1)


@pytest.mark.parametrize("far", [6, 10**12])  # beside each other, and too far apart for a table
def test_tracks_that_lie_far_apart_are_placed_alike(far):
    first, second = source([far, 3], [[50, 50], [10, 10]], [1, 1]), source([3, 5], [[10, 10], [90, 90]], [1, 1])
    placed = fuse_tracks([first, second], 4)
    np.testing.assert_array_equal(placed.tracks, [3, 5, far])
    np.testing.assert_allclose(placed.points, [[10, 10], [90, 90], [50, 50]])


def test_of_tracks_that_crowd_the_best_supported_stays():
    placed = fuse_tracks([source([1, 2, 3], [[0, 0], [3, 0], [6, 0]], [1, 2, 1.5])], 4)
    np.testing.assert_array_equal(placed.tracks, [2])


def test_tracks_begin_only_where_none_is_propagated_and_give_way_to_those_that_do():
    placed = fuse_tracks([source([7], [[10, 10]], [0.1])], 4)
    points = np.array([[12, 10], [30, 30], [60, 60], [61, 60]], np.float32)
    new = VotedKeypoints(points, np.array([9, 1, 2, 1.5], np.float32))
    image = add_new(placed, new, 100, 4, 2)
    np.testing.assert_array_equal(image.points, [[10, 10], [60, 60]])
    np.testing.assert_array_equal(image.tracks, [7, 100])


def test_a_pair_matches_what_its_own_flow_confirms():
    one, other = source([1, 2], [[10, 10], [40, 40]], [1, 1]), source([1, 9], [[16, 10], [90, 90]], [0.2, 0.2])
    image = add_new(fuse_tracks([one], 4), VotedKeypoints.none(), 0, 4, None)
    np.testing.assert_array_equal(confirmed(one, image, 2)[0], [[0, 0], [1, 1]])
    assert len(confirmed(other, image, 2)[0]) == 0  # six pixels off, and a track that is not here


def test_queries_keep_every_propagated_keypoint():
    image = each_propagated([source([1, 2], [[10, 10], [10.1, 10]], [1, 1]), source([3], [[10, 10]], [1])])
    np.testing.assert_array_equal(image.tracks, [1, 2, 3])
    assert len(each_propagated([])) == 0


def test_images_follow_those_they_are_paired_with():
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("b", "d"), ("x", "y")]
    order = image_order(pairs)
    assert order[0] == "b"
    assert order.index("x") > 3 or order.index("y") > 3
    assert image_order(pairs, {"x", "a"})[:1] == ["b"]
    assert "x" not in image_order(pairs, {"x", "a"})


@pytest.mark.parametrize("count", [1, 0])
def test_an_image_may_have_nothing(count):
    image = add_new(fuse_tracks((), 4), VotedKeypoints.none(), 0, 4, count)
    assert (len(image), image.points.shape) == (0, (0, 2))
