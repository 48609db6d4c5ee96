"""Calibration: known distortions of the confidence are found and undone."""

import pytest
import torch

from pdc_sfm.matches.select import highest_p_r
from pdc_sfm.network import NetworkSettings, PDCNet
from pdc_sfm.network.mixture import p_r
from pdc_sfm.training.calibration import Observations, apply, fit, largest_gap, reliability


def honest(count=400_000):
    """Cells that are right as often as they say."""
    torch.manual_seed(0)
    log_var = torch.stack([torch.zeros(count), torch.empty(count).uniform_(1, 10)], 1).double()
    logits = (3 * torch.randn(count, 2)).double()
    stated = p_r(log_var[..., None, None], logits[..., None, None], 1.0).reshape(-1)
    return log_var, logits, torch.rand(count) < stated


def test_honest_statements_stay_as_they_are():
    scale, shift = fit(Observations(*honest()))
    assert scale == pytest.approx(1, abs=0.03)
    assert shift == pytest.approx(0, abs=0.05)


def test_a_boast_is_undone():
    log_var, logits, right = honest()
    boast = Observations(log_var, logits * 2 + torch.tensor([1.5, 0.0]), right)
    assert largest_gap(reliability(boast.stated(), right)) > 0.1
    scale, shift = fit(boast)
    assert scale == pytest.approx(0.5, abs=0.03)  # logits / 2 - 0.75
    assert shift == pytest.approx(-0.75, abs=0.05)
    assert largest_gap(reliability(boast.stated(scale, shift), right)) < 0.02


def test_reliability_counts_every_cell_once_up_to_the_highest_value():
    stated = torch.tensor([0.0, 0.3, highest_p_r(1.0)])
    table = reliability(stated, torch.tensor([False, True, True]))
    assert table[:, 0].sum() == 3
    assert table[-1].tolist() == [1, pytest.approx(highest_p_r(1.0)), 1]


def test_the_last_layer_takes_it_in_and_the_flow_stays():
    torch.manual_seed(0)
    network = PDCNet(
        NetworkSettings(
            backbone="efficientnet_lite0",
            shared_backbone=True,
            pyramid_channels=(8, 8, 8),
            correlation="plain",
            radius=2,
            decoder_channels=(8, 8, 8, 8, 8),
            refined_levels=(),
            slice_layers="mlp",
            slice_channels=(8, 8, 8, 4),
        )
    ).eval()
    images = torch.rand(2, 1, 3, 64, 64)
    with torch.no_grad():
        before = network(*images)[-1]
        apply(network, 0.5, -0.75)
        after = network(*images)[-1]
    assert torch.equal(before.flow, after.flow)
    assert torch.equal(before.log_var, after.log_var)
    expected = before.logits * 0.5 + torch.tensor([-0.75, 0.0]).view(1, 2, 1, 1)
    assert torch.allclose(after.logits, expected, atol=1e-5)
