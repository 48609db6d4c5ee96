"""Elastic perturbations: local, smooth, one-to-one, and composed with the warp as in the paper."""

import numpy as np
import pytest

from pdc_sfm.errors import SettingsError
from pdc_sfm.synthetic.perturbations import PerturbationSettings, random_residual, soft_mask
from pdc_sfm.synthetic.warps import ImageFrame, WarpSettings, random_warp

FRAME = ImageFrame(128, 160)


def test_a_soft_mask_is_a_gaussian_doubled_and_clipped():
    mask = soft_mask(FRAME, (50.0, 40.0), 8.0)
    assert mask[40, 50] == 1
    assert mask[40, 50 + 8] == 1  # 2 exp(-1/2) > 1
    assert mask[40 + 8, 50 + 16] == pytest.approx(2 * np.exp(-(8**2 + 16**2) / (2 * 64)), rel=1e-5)
    assert mask[127, 159] < 1e-6


def test_a_residual_is_local_and_never_folds():
    settings, rng = PerturbationSettings(), np.random.default_rng(0)
    shares = []
    for _ in range(30):
        residual = random_residual(FRAME, settings, rng).astype(np.float64)
        length = np.hypot(residual[..., 0], residual[..., 1])
        assert 0.1 < length.max() < 0.03 * 128 * 1.5
        shares.append((length > 0.05).mean())
        moved = FRAME.grid() + residual
        right, down = np.diff(moved, axis=1)[:-1], np.diff(moved, axis=0)[:, :-1]
        assert (right[..., 0] * down[..., 1] - right[..., 1] * down[..., 0]).min() > 0
    assert np.mean(shares) < 0.6


def test_steep_fields_are_flattened_to_the_allowed_slope():
    steep = PerturbationSettings(length=(0.02, 0.02), amplitude=(0.2, 0.2), max_slope=0.3)
    residual = random_residual(FRAME, steep, np.random.default_rng(0))
    slopes = [np.abs(np.diff(residual, axis=axis)).max() for axis in (0, 1)]
    assert max(slopes) == pytest.approx(0.3, rel=1e-3)


def test_the_perturbed_flow_is_the_base_flow_read_at_the_moved_point_plus_the_residual():
    rng = np.random.default_rng(3)
    warp, _ = random_warp(FRAME, WarpSettings(), rng)
    grid, residual = FRAME.grid(), random_residual(FRAME, PerturbationSettings(), rng)
    moved = grid + residual
    base_flow_there = warp(moved) - moved  # Y~(x + e)
    flow = warp(grid + residual) - grid  # what a pair carries
    assert flow == pytest.approx(base_flow_there + residual, abs=1e-3)


def test_no_region_means_no_residual():
    settings = PerturbationSettings(regions=(0, 0))
    assert not random_residual(FRAME, settings, np.random.default_rng(0)).any()


@pytest.mark.parametrize("wrong", [{"max_slope": 0.6}, {"region": (0.2, 0.1)}, {"length": (0.0, 0.1)}])
def test_settings_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        PerturbationSettings(**wrong)
