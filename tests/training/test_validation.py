"""Figures of networks whose answers are known."""

import math

import pytest
import torch

from pdc_sfm.network import LevelOutput
from pdc_sfm.training.batch import Batch
from pdc_sfm.training.validation import validate


def shifted(shift, size=(64, 64), pairs=1):
    """A batch whose true flow is the same everywhere, all of it visible."""
    flow = torch.tensor(shift, dtype=torch.float32).view(1, 2, 1, 1).expand(pairs, 2, *size).clone()
    everywhere = torch.ones(pairs, *size, dtype=torch.bool)
    images = torch.zeros(pairs, 3, *size)
    return Batch(images, images, flow, everywhere, ~everywhere)


class Constant(torch.nn.Module):
    """A network that answers with one flow and one confidence everywhere."""

    precision = None

    def __init__(self, flow, inlier_logit):
        super().__init__()
        self.flow, self.inlier_logit = flow, inlier_logit

    def forward(self, reference, query):
        size = tuple(reference.shape[-2:])
        flow = torch.tensor(self.flow).view(1, 2, 1, 1).expand(len(reference), 2, size[0] // 4, size[1] // 4)
        log_var = torch.tensor([0.0, 2 * math.log(300.0)]).view(1, 2, 1, 1).expand_as(flow)
        logits = torch.tensor([self.inlier_logit, 0.0]).view(1, 2, 1, 1).expand_as(flow)
        return (LevelOutput(1, flow, log_var, logits, size, size),)


def test_figures_of_a_network_that_is_two_pixels_off_and_sure_of_it():
    figures = validate(Constant([5.0, 0.0], 20.0), [shifted((3.0, 0.0), pairs=2)])
    assert [figures[name] for name in ("pck_1", "pck_3", "pck_5")] == [0, 1, 1]
    assert figures["aepe"] == pytest.approx(2)
    assert (figures["kept"], figures["kept_pck_5"]) == (1, 1)
    assert figures["calibration_gap"] == pytest.approx(
        (1 - math.exp(-math.sqrt(2))) ** 2, abs=1e-4
    )  # says .573, is never right


def test_hidden_pixels_and_unrelated_pairs_are_counted_apart():
    half, apart = shifted((3.0, 0.0)), shifted((0.0, 0.0))
    half.hidden[:, :32] = True
    half.flow[:, :, :32] = torch.nan
    apart.hidden[:], apart.valid[:] = True, False
    sure = validate(Constant([3.0, 0.0], 20.0), [half, apart])
    assert sure["pck_1"] == 1
    assert (sure["hidden_confident"], sure["unrelated_confident"]) == (1, 1)
    unsure = validate(Constant([3.0, 0.0], -20.0), [half, apart])
    assert (unsure["kept"], unsure["hidden_confident"], unsure["unrelated_confident"]) == (0, 0, 0)
    assert unsure["calibration_gap"] == pytest.approx(1, abs=1e-3)  # says 0, is always right
