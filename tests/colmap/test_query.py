"""Which pose of a query holds when its matches tell of two places."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pycolmap
import pytest

from pdc_sfm.colmap.localization.query import PoseSettings, Query, localize_query

CAMERA = pycolmap.Camera(model="PINHOLE", width=640, height=480, params=[500, 500, 320, 240])
HERE, ELSEWHERE = np.array([1.0, 0.0, 0.5]), np.array([40.0, -3.0, 7.0])


def seen_from(place, low, high, count, rng):
    """Keypoints between two corners of the image, and the points in space that a camera at a place sees there."""
    keypoints = rng.uniform(low, high, (count, 2))
    depth = rng.uniform(4, 9, (count, 1))
    rays = np.c_[(keypoints - (320, 240)) / 500, np.ones(count)]
    return keypoints, place + depth * rays


def query_of(*views):
    """A query whose keypoint i shows point i, and what the model knows of the points."""
    keypoints, points = (np.concatenate(parts) for parts in zip(*views))
    everything = np.arange(len(points))
    lookup = SimpleNamespace(xyz=lambda ids: points[ids], point_ids=lambda _: everything)
    found = [(1, np.c_[everything, everything], np.full(len(points), 0.5))]
    return Query("query.jpg", CAMERA, keypoints, found), lookup


def place_of(localized):
    return localized.attempt.estimate["cam_from_world"].inverse().translation


@pytest.fixture
def two_places():
    """Matches all over the picture, and twice as many of one small thing that looks like another elsewhere."""
    rng = np.random.default_rng(0)
    wide = seen_from(HERE, (20, 20), (620, 460), 200, rng)
    return query_of(wide, seen_from(ELSEWHERE, (300, 200), (340, 240), 400, rng))


def test_what_explains_more_of_the_picture_holds_against_more_matches_of_one_thing(two_places):
    found = localize_query(*two_places, PoseSettings())
    np.testing.assert_allclose(place_of(found), HERE, atol=1e-6)
    inliers = found.attempt.estimate["inlier_mask"]
    assert inliers[:200].all()
    assert found.attempt.num_inliers == inliers.sum() == 200


def test_one_hypothesis_counts_inliers_as_others_do(two_places):
    found = localize_query(*two_places, PoseSettings(hypotheses=1))
    np.testing.assert_allclose(place_of(found), ELSEWHERE, atol=1e-6)


def test_a_few_scattered_matches_do_not_outvote_a_place_that_many_support():
    rng = np.random.default_rng(0)
    many = seen_from(HERE, (20, 20), (320, 460), 2000, rng)
    few = seen_from(ELSEWHERE, (20, 20), (620, 460), 40, rng)
    np.testing.assert_allclose(place_of(localize_query(*query_of(many, few), PoseSettings())), HERE, atol=1e-6)


def test_what_fits_to_a_fraction_of_a_pixel_holds_against_more_that_fits_by_and_large():
    rng = np.random.default_rng(0)
    here, there = (seen_from(place, (20, 20), (620, 460), n, rng) for place, n in ((HERE, 300), (ELSEWHERE, 600)))
    alike = there[0] + rng.normal(0, 3, there[0].shape), there[1]
    np.testing.assert_allclose(place_of(localize_query(*query_of(here, alike), PoseSettings())), HERE, atol=1e-6)
    alone = place_of(localize_query(*query_of(here, alike), PoseSettings(hypotheses=1)))
    np.testing.assert_allclose(alone, ELSEWHERE, atol=0.5)


def test_matches_without_confidence_are_matches_too(two_places):
    query, lookup = two_places
    ((image, matches, scores),) = query.found
    unsure = dataclasses.replace(query, found=[(image, matches, np.zeros_like(scores))])
    np.testing.assert_allclose(place_of(localize_query(unsure, lookup, PoseSettings())), ELSEWHERE, atol=1e-6)


def test_a_crowd_of_neighbors_that_err_together_counts_as_one():
    """The tenth of the picture with most of the matches is off by two pixels; the rest is exact."""
    rng = np.random.default_rng(0)
    sparse, crowd = (
        seen_from(HERE, low, high, n, rng)
        for low, high, n in (((20, 20), (620, 460), 300), ((330, 250), (350, 270), 3000))
    )
    query, lookup = query_of(sparse, (crowd[0] + (2.0, 0.0), crowd[1]))
    by_squares = place_of(localize_query(query, lookup, PoseSettings(hypotheses=1)))
    alone = place_of(localize_query(query, lookup, PoseSettings(hypotheses=1, weighted=False)))
    assert np.linalg.norm(by_squares - HERE) < 0.1 * np.linalg.norm(alone - HERE)
