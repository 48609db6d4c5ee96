"""No keypoint in more than one match."""

import numpy as np

from pdc_sfm.matches.one_to_one import one_to_one


def test_one_to_one_keeps_pairs_that_are_best_for_both():
    i, j = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])
    kept = one_to_one(i, j, np.array([0.9, 0.8, 0.5, 0.1]))
    np.testing.assert_array_equal(kept, [0, 3])  # (1, 1) is not the best of 1 on the right


def test_a_match_stays_only_if_it_is_the_best_of_both_its_ends():
    ids0 = np.array([0, 0, 1, 2, -1])
    ids1 = np.array([5, 6, 6, 7, 7])
    kept = one_to_one(ids0, ids1, np.array([0.9, 0.8, 0.7, 0.5, 1.0]))
    # 1-6 loses to 0-6, which in turn loses to 0-5: neither is the best of both its ends
    np.testing.assert_array_equal(kept, [0, 3])


def test_of_equals_the_earlier_and_nothing_of_nothing():
    np.testing.assert_array_equal(one_to_one(np.array([4, 4]), np.array([1, 0]), np.ones(2)), [0])
    assert len(one_to_one(np.zeros(0, int), np.zeros(0, int), np.zeros(0))) == 0


def test_ranks_that_differ_only_in_double_precision_are_no_equals():
    kept = one_to_one(np.array([0, 0]), np.array([0, 1]), np.array([0.5, 0.5 + 1e-12]))
    np.testing.assert_array_equal(kept, [1])
