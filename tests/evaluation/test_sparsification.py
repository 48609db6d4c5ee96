"""Sparsification and calibration against values computed by hand."""

import numpy as np
import pytest

from pdc_sfm.evaluation.measures.calibration import Calibration, reliability_table
from pdc_sfm.evaluation.measures.sparsification import aepe_cost, mean_sparsification, pck_cost, sparsification

ERRORS = np.array([4.0, 1.0, 3.0, 0.0])  # mean 2


def test_the_right_ranking_is_the_oracle():
    result = sparsification(aepe_cost(ERRORS), ERRORS, steps=4)
    assert result.removed.tolist() == [0, 0.25, 0.5, 0.75, 1]
    # rest after removing the worst: mean of 0,1,3,4 / 0,1,3 / 0,1 / 0 / nothing, relative to 2
    assert result.oracle.tolist() == pytest.approx([1, 2 / 3, 1 / 4, 0, 0])
    assert result.curve.tolist() == pytest.approx(result.oracle.tolist())
    assert result.ause == 0


def test_the_opposite_ranking_keeps_the_worst():
    result = sparsification(aepe_cost(ERRORS), -ERRORS, steps=4)
    assert result.curve.tolist() == pytest.approx([1, 8 / 6, 7 / 4, 2, 0])
    # trapezoids of the differences 0, 2/3, 3/2, 2, 0
    assert result.ause == pytest.approx((0 / 2 + 2 / 3 + 3 / 2 + 2 + 0 / 2) / 4)


def test_a_ranking_that_knows_nothing_changes_nothing():
    result = sparsification(aepe_cost(ERRORS), np.zeros(4), steps=4)
    assert result.curve.tolist() == pytest.approx([1, 1, 1, 1, 0])


def test_ties_count_as_a_random_order_among_them():
    # 4 and 1 tie as the least certain: removing one of them removes 2.5 on average
    result = sparsification(aepe_cost(ERRORS), np.array([9.0, 9.0, 1.0, 0.0]), steps=4)
    assert result.curve[1] == pytest.approx((3 + 0 + 2.5) / 3 / 2)


def test_infinite_uncertainty_is_removed_first():
    result = sparsification(aepe_cost(ERRORS), np.array([np.inf, 1.0, 2.0, 0.0]), steps=4)
    assert result.curve[1] == pytest.approx(2 / 3)


def test_for_pck_the_cost_is_being_off_by_more_than_the_threshold():
    errors = np.array([5.0, 5.1, 100.0, 0.0])
    assert pck_cost(errors).tolist() == [0, 1, 1, 0]
    result = sparsification(pck_cost(errors), np.array([0.0, 1.0, 2.0, 3.0]), steps=4)
    assert result.curve.tolist() == pytest.approx([1, 4 / 3, 1, 0, 0])
    assert result.oracle.tolist() == pytest.approx([1, 2 / 3, 0, 0, 0])


def test_a_pair_without_errors_has_nothing_to_rank():
    assert sparsification(pck_cost(np.zeros(10)), np.arange(10.0)).ause == 0


def test_pairs_weigh_alike_whatever_their_size_and_error():
    small = sparsification(aepe_cost(ERRORS), -ERRORS, steps=4)
    large = sparsification(aepe_cost(np.tile(1000 * ERRORS, 50)), np.tile(ERRORS, 50), steps=4)
    assert mean_sparsification([small, large]).ause == pytest.approx(small.ause / 2)


def test_calibration_compares_what_is_stated_with_what_happened():
    calibration = Calibration()
    calibration.add(np.array([0.02, 0.06, 0.04, 0.08]), np.array([False, False, False, True]))
    calibration.add(np.array([1.0, 0.92]), np.array([True, False]))
    rows = calibration.rows()
    assert len(rows) == 10
    whole, last = {"kept": 1, "kept_true": 2 / 6}, {"kept": 2 / 6, "kept_true": 0.5}
    assert rows[0] == pytest.approx({"from": 0, "to": 0.1, "share": 4 / 6, "stated": 0.05, "true": 0.25} | whole)
    assert rows[9] == pytest.approx({"from": 0.9, "to": 1, "share": 2 / 6, "stated": 0.96, "true": 0.5} | last)
    assert np.isnan(rows[5]["stated"])
    assert calibration.error == pytest.approx((4 * 0.2 + 2 * 0.46) / 6)
    assert calibration.excess == pytest.approx(2 * 0.46 / 6)
    printed = [line.split() for line in reliability_table({"all": calibration.summary()}).splitlines()]
    assert printed[3:] == [
        ["all", "0.0-0.1", "0.050", "0.250", "66.7", "100.0", "0.333"],
        ["all", "0.9-1.0", "0.960", "0.500", "33.3", "33.3", "0.500"],
        ["all", "ECE", "0.287"],
    ]


def test_the_laplace_mixture_is_calibrated_by_its_own_samples():
    # errors drawn from one Laplace distribution with sigma 1 in each direction: P_1 = 0.573
    errors = np.random.default_rng(0).laplace(0, np.sqrt(0.5), (40_000, 2))
    calibration = Calibration()
    calibration.add(np.full(len(errors), (1 - np.exp(-np.sqrt(2))) ** 2), np.abs(errors).max(1) < 1)
    assert calibration.error < 0.01
