"""The homography of a first pass: found among outliers, refused when no two views could give it."""

import numpy as np
import pytest

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.homography_fit import fit_homography, in_front, is_sound
from pdc_sfm.pixels import grid_points, inside, transform

SIZE = (320, 240)
POINTS = grid_points((16, 12), SIZE).reshape(-1, 2).astype(np.float64)


def estimate_of(homography, outliers: float = 0.0, unsure: float = 0.0, size=SIZE) -> DenseEstimate:
    """An estimate on an 80 x 60 grid that follows a homography, with some cells wrong and some not confident."""
    rng = np.random.default_rng(0)
    grid = grid_points((80, 60), size)
    points = transform(grid, homography)
    wrong = rng.random(grid.shape[:2]) < outliers
    points[wrong] = rng.random((wrong.sum(), 2)) * size
    logits = np.zeros((60, 80, 2), np.float32)
    logits[..., 0] = np.where(rng.random((60, 80)) < unsure, -9, 9)
    log_var = np.full_like(logits, 8.0) * [0, 1]
    return DenseEstimate((points - grid).astype(np.float32), log_var, logits, inside(points, size), size, size)


TRUTH = np.array([[0.9, -0.2, 40], [0.15, 1.05, -10], [3e-4, 1e-4, 1]])


def test_the_homography_is_found_among_half_outliers_and_its_share_is_counted():
    fit = fit_homography(estimate_of(TRUTH, outliers=0.5), SIZE, SIZE)
    np.testing.assert_allclose(transform(POINTS, fit.query_from_reference), transform(POINTS, TRUTH), atol=0.05)
    assert fit.share == pytest.approx(0.5, abs=0.1)


def test_it_is_in_original_pixels_while_the_threshold_is_in_the_networks():
    size = (1280, 960)  # the network saw a quarter of it
    scale = np.diag([4.0, 4.0, 1.0])
    truth = scale @ TRUTH @ np.linalg.inv(scale)
    noisy = estimate_of(truth, size=size)
    noise = np.random.default_rng(1).normal(0, 1.2, noisy.flow.shape).astype(np.float32)  # 0.3 network pixels
    noisy = DenseEstimate(noisy.flow + noise, noisy.log_var, noisy.logits, noisy.valid, size, size)
    fit = fit_homography(noisy, SIZE, SIZE)
    assert fit.share > 0.95
    np.testing.assert_allclose(transform(4 * POINTS, fit.query_from_reference), transform(4 * POINTS, truth), atol=0.5)


def test_cells_that_are_not_confident_do_not_count():
    fit = fit_homography(estimate_of(TRUTH, unsure=0.5), SIZE, SIZE)
    everything = fit_homography(estimate_of(TRUTH), SIZE, SIZE)
    assert fit.matches == pytest.approx(everything.matches / 2, rel=0.1)
    assert fit_homography(estimate_of(TRUTH, unsure=0.99), SIZE, SIZE) is None


def test_chaos_has_no_homography():
    assert fit_homography(estimate_of(TRUTH, outliers=1.0), SIZE, SIZE) is None


def test_a_homography_whose_origin_lies_behind_the_horizon_keeps_its_points_in_front():
    flipped = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.01, 0, -0.5]])  # the horizon is the column x = 50
    points = POINTS[POINTS[:, 0] > 120]
    opencv = flipped / flipped[2, 2]  # OpenCV scales so that the last entry is 1
    assert not is_sound(opencv, points)
    turned = in_front(opencv, points)
    np.testing.assert_allclose(turned / turned[0, 0], flipped)


@pytest.mark.parametrize(
    "homography",
    [
        np.diag([-1.0, 1.0, 1.0]),  # mirrored
        np.diag([0.05, 0.05, 1.0]),  # shrunken to a twentieth
        np.diag([20.0, 20.0, 1.0]),
        np.diag([5.0, 0.2, 1.0]),  # stretched
        np.array([[1.0, 0, 0], [0, 1, 0], [-0.01, 0, 1]]),  # a horizon through the image
        np.full((3, 3), np.nan),
    ],
)
def test_impossible_homographies_are_refused(homography):
    assert not is_sound(homography, POINTS)


@pytest.mark.parametrize("homography", [np.eye(3), TRUTH, np.diag([3.0, 3.0, 1.0]), np.linalg.inv(TRUTH)])
def test_real_views_are_accepted(homography):
    assert is_sound(homography, POINTS)
