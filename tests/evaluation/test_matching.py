"""MMA, AUC and mAP of poses against values computed by hand."""

import numpy as np
import pytest

from pdc_sfm.evaluation.measures.matching import matching_accuracy, mean_matching_accuracy, most_confident
from pdc_sfm.evaluation.measures.relative_poses import pose_accuracy, pose_auc, pose_map


def test_the_most_confident_come_first_and_no_more_than_asked_for():
    assert most_confident(np.array([0.2, 0.9, 0.1, 0.5]), 3).tolist() == [1, 3, 0]
    assert len(most_confident(np.zeros(5000))) == 2000


def test_matching_accuracy_at_each_threshold():
    accuracy = matching_accuracy(np.array([0.5, 1.0, 2.5, np.inf]), (1.0, 2.0, 3.0))
    assert accuracy.tolist() == [0.5, 0.5, 0.75]


def test_mma_is_the_mean_over_pairs_and_a_pair_without_matches_counts_as_failed():
    assert mean_matching_accuracy([np.array([0.5]), np.zeros(0)], (1.0,)).tolist() == [0.5]


def test_map_is_the_mean_accuracy_at_steps_of_five_degrees():
    errors = np.array([1.0, 7.0, 12.0, 17.0, np.inf])
    assert pose_accuracy(errors, 5) == pytest.approx(0.2)
    expected = (0.2, (0.2 + 0.4) / 2, (0.2 + 0.4 + 0.6 + 0.8) / 4)
    assert pose_map(errors) == pytest.approx(expected)


def test_auc_is_the_area_under_straight_lines_through_the_sorted_errors():
    # recall goes 0 -> 1/2 at 2 degrees -> 1 at 4 degrees
    errors = np.array([4.0, 2.0])
    area_to_5 = 0.5 * 2 * 0.5 + 2 * (0.5 + 1) / 2 + 1 * 1
    assert pose_auc(errors, (5.0,)) == pytest.approx((area_to_5 / 5,))
    # up to 3 degrees: after the pair at 2 degrees the recall stays
    assert pose_auc(errors, (3.0,)) == pytest.approx(((0.5 * 2 * 0.5 + 1 * 0.5) / 3,))


def test_pairs_without_a_pose_have_no_area():
    assert pose_auc(np.array([np.inf, np.inf])) == (0.0, 0.0, 0.0)
    assert pose_auc(np.array([0.0, np.inf])) == pytest.approx((0.5, 0.5, 0.5))
