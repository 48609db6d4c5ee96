"""The training loss against the paper's formulas, evaluated directly in float64."""

import math

import numpy as np
import pytest
import torch

from pdc_sfm.errors import SettingsError
from pdc_sfm.network import LevelOutput
from pdc_sfm.training.batch import Batch
from pdc_sfm.training.loss import LossSettings, level_ground_truth, training_loss

JACOBIAN = np.array([[0.9, -0.2], [0.3, 1.1]])
SHIFT = np.array([7.0, -4.0])


def to_query(xy):
    """The affine map of the tests: reference pixel -> query pixel."""
    return xy @ JACOBIAN.T + SHIFT


def cell_centers(cells, size):
    """(h, w, 2) centers (i + .5) * s - .5 of a grid of (h, w) cells over an image of (height, width), in pixels."""
    y = (np.arange(cells[0]) + 0.5) * size[0] / cells[0] - 0.5
    x = (np.arange(cells[1]) + 0.5) * size[1] / cells[1] - 0.5
    return np.stack(np.meshgrid(x, y), -1)


def make_batch(pairs=2, size=(320, 384)):
    xy = cell_centers(size, size)
    flow = torch.from_numpy((to_query(xy) - xy).transpose(2, 0, 1)).float().expand(pairs, 2, *size).clone()
    everywhere = torch.ones(pairs, *size, dtype=torch.bool)
    images = torch.zeros(pairs, 3, *size)
    return Batch(images, images, flow, everywhere, ~everywhere)


def make_level(number, cells, branch_size, pairs=2, components=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    flow = 40 * torch.randn(pairs, 2, *cells, generator=generator)
    log_var = 3 + torch.randn(pairs, components, *cells, generator=generator)
    log_var[:, 0] = 0
    logits = torch.randn(pairs, components, *cells, generator=generator)
    return LevelOutput(number, flow, log_var, logits, branch_size, branch_size)


def pyramid(size, pairs=2):
    return [
        make_level(4, (16, 16), (256, 256), pairs, seed=4),
        make_level(3, (32, 32), (256, 256), pairs, seed=3),
        make_level(2, (size[0] // 8, size[1] // 8), size, pairs, seed=2),
        make_level(1, (size[0] // 4, size[1] // 4), size, pairs, seed=1),
    ]


def density(flow, log_var, logits, truth):
    """p(y) of Eq. 2-3 in float64: arrays (..., 2), (..., M), (..., M), (..., 2)."""
    variance = np.exp(log_var)
    alpha = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    l1 = np.abs(truth - flow).sum(-1, keepdims=True)
    return (alpha / (2 * variance) * np.exp(-np.sqrt(2 / variance) * l1)).sum(-1)


def arrays(level):
    return [x.double().numpy().transpose(0, 2, 3, 1) for x in (level.flow, level.log_var, level.logits)]


def true_flow_in_branch(level, xy, size):
    """The affine map at image points, in pixels of the branch's input."""
    scale = np.array([level.reference_size[1] / size[1], level.reference_size[0] / size[0]])
    return (to_query(xy) - xy) * scale


def test_stage_1_is_the_weighted_sum_of_minus_log_density_at_cell_centers():
    size = (320, 384)
    batch, levels = make_batch(2, size), pyramid(size)
    expected = 0.0
    for level, weight in zip(levels, (0.32, 0.08, 0.02, 0.01)):
        flow, log_var, logits = arrays(level)
        truth = true_flow_in_branch(level, cell_centers(level.flow.shape[-2:], size), size)
        expected += weight * -np.log(density(flow, log_var, logits, truth)).sum() / 2
    assert training_loss(levels, batch, LossSettings()).total.item() == pytest.approx(expected, rel=1e-5)


def test_mean_reduction_does_not_depend_on_the_image_size():
    settings = LossSettings(reduction="mean", level_weights=(1,))

    def loss(size):
        level = make_level(1, (size[0] // 4, size[1] // 4), size, 1)
        exact = LevelOutput(1, torch.zeros_like(level.flow), level.log_var * 0, level.logits * 0, size, size)
        batch = make_batch(1, size)
        batch.flow = torch.full_like(batch.flow, 2.0)
        return training_loss([exact], batch, settings).total.item()

    # |y - mu|_1 = 4, sigma^2 = 1: -log(1/2 exp(-4 sqrt 2))
    assert loss((64, 64)) == pytest.approx(math.log(2) + 4 * math.sqrt(2), rel=1e-6)
    assert loss((128, 192)) == pytest.approx(loss((64, 64)), rel=1e-6)


def test_ground_truth_of_a_level_is_exact_between_pixels_and_for_sizes_the_network_floors():
    size = (100, 131)  # the full-resolution branch sees 256 x 256
    batch = make_batch(1, size)
    level = make_level(2, (32, 32), (256, 256), 1)
    target, valid, _ = level_ground_truth(level, batch, max_jump=6.0)
    truth = true_flow_in_branch(level, cell_centers((32, 32), size), size)
    assert valid.all()
    np.testing.assert_allclose(target[0].permute(1, 2, 0).numpy(), truth, atol=1e-3)


def test_unknown_flow_may_be_nan_without_reaching_loss_or_gradient():
    size = (64, 64)
    batch, level = make_batch(1, size), make_level(1, (16, 16), size, 1)
    whole = training_loss([level], batch, LossSettings(level_weights=(1,)))
    batch.valid[:, 32:] = False
    batch.flow[:, :, 32:] = torch.nan
    level.flow.requires_grad_(True)
    value = training_loss([level], batch, LossSettings(level_weights=(1,), robust_flow_weight=1.0))
    value.total.backward()
    assert 0 < value.total.item() < 2 * whole.total.item()
    assert torch.isfinite(level.flow.grad).all()
    assert (level.flow.grad[:, :, 8:] == 0).all()
    assert (level.flow.grad[:, :, :8] != 0).any()


def test_a_batch_without_any_supervised_pixel_gives_zero():
    batch, level = make_batch(1, (64, 64)), make_level(1, (16, 16), (64, 64), 1)
    batch.valid[:] = False
    assert training_loss([level], batch, LossSettings(level_weights=(1,))).total.item() == 0


def test_cells_between_two_surfaces_are_left_out():
    size = (64, 64)
    batch, level = make_batch(1, size), make_level(1, (16, 16), size, 1)
    batch.flow[:] = 0
    batch.flow[:, :, :, 30:] = 25.0  # an edge through cell 7, whose center lies between pixels 29 and 30
    target, valid, _ = level_ground_truth(level, batch, max_jump=6.0)
    assert valid.all(1)[0].tolist() == [column != 7 for column in range(16)]
    assert set(target[0, :, :, [6, 8]].unique().tolist()) == {0.0, 25.0}


def test_the_flow_only_baseline_learns_by_l1():
    size = (64, 64)
    batch, level = make_batch(1, size), make_level(1, (16, 16), size, 1)
    plain = LevelOutput(1, level.flow, None, None, size, size)
    truth = true_flow_in_branch(level, cell_centers((16, 16), size), size)
    expected = np.abs(arrays(level)[0] - truth).sum()
    settings = LossSettings(level_weights=(1,), outlier_weight=1.0)
    assert training_loss([plain], batch, settings).total.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("components", [2, 3])
def test_hidden_pixels_ask_for_the_last_component(components):
    size = (64, 64)
    batch, level = make_batch(2, size), make_level(1, (16, 16), size, 2, components)
    batch.valid[:] = False
    batch.hidden[0] = True
    logits = arrays(level)[2][0]
    alpha = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    settings = LossSettings(level_weights=(1,), reduction="mean", outlier_weight=0.5)
    expected = 0.5 * -np.log(alpha[..., -1]).mean() / 2
    assert training_loss([level], batch, settings).total.item() == pytest.approx(expected, rel=1e-5)


def test_the_robust_flow_loss_is_the_quartic_root_and_decays_to_nothing():
    size = (64, 64)
    batch, level = make_batch(1, size), make_level(1, (16, 16), size, 1)
    settings = LossSettings(level_weights=(1,), robust_flow_weight=2.0, robust_flow_until=100)
    without = training_loss([level], batch, LossSettings(level_weights=(1,))).total.item()
    truth = true_flow_in_branch(level, cell_centers((16, 16), size), size)
    robust = ((((arrays(level)[0] - truth) ** 2).sum(-1) + 0.01) ** 0.25).sum()
    for iteration, weight in ((0, 2.0), (50, 1.0), (100, 0.0), (500, 0.0)):
        total = training_loss([level], batch, settings, iteration).total.item()
        assert total == pytest.approx(without + weight * robust, rel=1e-5)


def test_stage_2_compares_at_the_images_resolution():
    size = (64, 64)
    batch, level = make_batch(1, size), make_level(1, (16, 16), size, 1)
    # constant parameters stay constant when upsampled
    constant = (x[:, :, :1, :1].expand(-1, -1, 16, 16) for x in (level.flow, level.log_var, level.logits))
    level = LevelOutput(1, *constant, size, size)
    flow, log_var, logits = (x[:, :1, :1] for x in arrays(level))
    truth = true_flow_in_branch(level, cell_centers(size, size), size)
    expected = -np.log(density(flow, log_var, logits, truth[None])).sum()
    settings = LossSettings(resolution="image", level_weights=(1,))
    assert training_loss([level], batch, settings).total.item() == pytest.approx(expected, rel=1e-5)


def test_stage_2_weighs_the_256_branch_by_its_own_resolution():
    size = (512, 512)
    batch = make_batch(1, size)
    batch.flow[:] = 8.0  # 4 px in the branch
    flat = torch.zeros(1, 2, 16, 16)
    level = LevelOutput(4, flat, flat, flat, (256, 256), (256, 256))
    settings = LossSettings(resolution="image", level_weights=(1,))
    expected = 256 * 256 * (math.log(2) + 8 * math.sqrt(2))
    assert training_loss([level], batch, settings).total.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_sparse_correspondences_equal_dense_ones_at_the_same_points(reduction):
    size = (96, 128)
    dense, levels = make_batch(2, size), pyramid(size)
    settings = LossSettings("image", (0.08, 0.08, 0.02, 0.02), reduction, robust_flow_weight=0.5)
    rng = np.random.default_rng(0)
    dense.valid[:] = torch.from_numpy(rng.random((2, *size)) < 0.02)
    points = []
    for mask in dense.valid.numpy():
        reference = np.argwhere(mask)[:, ::-1].astype(np.float64)
        points.append(torch.from_numpy(np.hstack([reference, to_query(reference)])).float())
    sparse = make_batch(2, size)
    sparse.valid[:] = False
    sparse.flow[:] = torch.nan
    sparse.points = tuple(points)
    expected = training_loss(levels, dense, settings).total.item()
    if reduction == "mean":  # there each pair's points count as much as all pixels of a dense pair
        dense_by_pair = []
        for pair in range(2):
            only = make_batch(2, size)
            only.valid[:] = False
            only.valid[pair] = dense.valid[pair]
            total = training_loss(levels, only, settings).total.item()
            dense_by_pair.append(total * size[0] * size[1] / len(points[pair]))
        expected = sum(dense_by_pair)
    assert training_loss(levels, sparse, settings).total.item() == pytest.approx(expected, rel=1e-4)


def test_the_passes_of_a_level_share_its_weight():
    size = (320, 384)
    batch, levels = make_batch(2, size), pyramid(size)
    other = make_level(levels[1].level, tuple(levels[1].flow.shape[-2:]), levels[1].reference_size, seed=9)
    both = training_loss([levels[0], levels[1], other, *levels[2:]], batch, LossSettings()).total
    each = [training_loss([levels[0], x, *levels[2:]], batch, LossSettings()).total for x in (levels[1], other)]
    assert both.item() == pytest.approx(sum(x.item() for x in each) / 2, rel=1e-6)


def test_the_number_of_weights_must_fit_the_network():
    with pytest.raises(SettingsError, match="4 values, the network 1 levels"):
        training_loss([make_level(1, (16, 16), (64, 64), 1)], make_batch(1, (64, 64)), LossSettings())


def test_gradient_agrees_with_finite_differences():
    size = (32, 32)
    batch, level = make_batch(1, size), make_level(1, (8, 8), size, 1)
    parts = [x.clone().requires_grad_(True) for x in (level.flow, level.log_var, level.logits)]
    settings = LossSettings(level_weights=(1,), robust_flow_weight=1.0, outlier_weight=1.0)
    batch.hidden[:, :16] = True

    def loss(*x):
        return training_loss([LevelOutput(1, *x, size, size)], batch, settings).total

    loss(*parts).backward()
    for number, part in enumerate(parts):
        for place in ((0, 1, 2, 3), (0, 0, 6, 1)):
            values = []
            for sign in (1, -1):
                moved = [x.detach().clone() for x in parts]
                moved[number][place] += sign * 0.05
                values.append(loss(*moved).item())
            assert (values[0] - values[1]) / 0.1 == pytest.approx(part.grad[place].item(), rel=0.03, abs=0.02)
