"""AEPE, PCK and Fl against values computed by hand."""

import numpy as np
import pytest

from pdc_sfm.evaluation.measures.flow import FlowTally, aepe, end_point_error, fl, pck


def test_end_point_error_is_the_euclidean_distance_of_flows():
    estimated, true = np.array([[3.0, 4.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 2.0]])
    assert end_point_error(estimated, true).tolist() == [5.0, 1.0]
    assert aepe(np.array([5.0, 1.0])) == 3.0


def test_an_error_equal_to_the_threshold_is_correct():
    assert pck(np.array([0.5, 1.0, 1.0001, 7.0]), 1.0) == 0.5


def test_fl_counts_what_is_off_by_three_pixels_and_by_a_twentieth():
    errors = np.array([2.9, 3.1, 3.1, 10.0])
    # 2.9: below 3 px; 3.1 of 100: below 5 %; 3.1 of 50: 6.2 %; 10 of 0: above both
    true = np.array([[1.0, 0.0], [100.0, 0.0], [30.0, 40.0], [0.0, 0.0]])
    assert fl(errors, true) == 0.5


@pytest.fixture
def tally():
    """Three images of two sequences: 4 pixels with 3 correct, 1 pixel correct, 5 pixels wrong."""
    tally = FlowTally(thresholds=(1.0, 5.0))
    tally.add(np.array([0.0, 0.5, 1.0, 9.0]), np.zeros((4, 2)), "a")
    tally.add(np.array([1.0]), np.zeros((1, 2)), "a")
    tally.add(np.full(5, 20.0), np.full((5, 2), 1000.0), "b")
    return tally


def test_pck_per_dataset_counts_pixels_alike_and_per_image_images_alike(tally):
    assert tally.pck_per_dataset(1.0) == pytest.approx(4 / 10)
    assert tally.pck_per_image(1.0) == pytest.approx((3 / 4 + 1 + 0) / 3)


def test_by_group_every_sequence_counts_alike(tally):
    assert tally.pck_by_group(1.0) == pytest.approx(((3 / 4 + 1) / 2 + 0) / 2)
    assert tally.aepe_by_group() == pytest.approx(((10.5 / 4 + 1) / 2 + 20) / 2)


def test_aepe_is_averaged_over_images_and_fl_over_pixels(tally):
    assert tally.aepe() == pytest.approx((10.5 / 4 + 1 + 20) / 3)
    # the 9 px error of a zero flow is an outlier; 20 px of 1414 px is 1.4 %, none
    assert tally.fl() == pytest.approx(1 / 10)


def test_an_image_without_known_pixels_changes_nothing(tally):
    before = tally.aepe(), tally.pck_per_image(1.0)
    tally.add(np.zeros(0), np.zeros((0, 2)))
    assert (tally.aepe(), tally.pck_per_image(1.0)) == before


def test_fl_without_true_flow_is_refused():
    tally = FlowTally()
    tally.add(np.array([1.0]))
    with pytest.raises(ValueError, match="true flow"):
        tally.fl()
