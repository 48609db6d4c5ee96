"""Calibration: a confidence head's word is the share of right cells, and nothing but the confidence changes."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.network.confidence_head import CONFIDENCE_FEATURES, ConfidenceHead
from pdc_sfm.synthetic.pairs import SyntheticPairSettings, fixed_pairs
from pdc_sfm.synthetic.warps import WarpSettings
from pdc_sfm.training.calibration import ObservedCells, fit, head_confidence, largest_gap, observe, reliability
from pdc_sfm.weights import load_network


def observations(seed, count=200_000):
    """Cells that are right with a probability that two of the numbers known of them give; what was stated boasts."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, CONFIDENCE_FEATURES, generator=generator) * 3 + 5
    odds = (features[:, 0] - 5) / 2 + (features[:, 7] - 5) / 3
    right = torch.rand(count, generator=generator) < torch.sigmoid(odds)
    return ObservedCells(features, torch.sigmoid(odds + 1.5), right)


def test_a_confidence_head_finds_how_likely_cells_are_right():
    head = fit([observations(0), observations(1)], (8,), steps=1000)
    seen = observations(2)
    assert largest_gap(reliability(seen.stated, seen.right)) > 0.1
    assert largest_gap(reliability(head_confidence(head, seen), seen.right)) < 0.03


def test_kinds_count_alike_however_many_cells_they_have():
    """Of two kinds that contradict each other, one a hundred times the size, the truth lies in the middle."""
    features = torch.zeros(100_000, CONFIDENCE_FEATURES)
    kinds = [ObservedCells(features, features[:, 0], torch.ones(100_000, dtype=torch.bool))]
    kinds += [ObservedCells(features[:1000], features[:1000, 0], torch.zeros(1000, dtype=torch.bool))]
    head = fit(kinds, (4,), steps=200)
    assert head(torch.zeros(1, CONFIDENCE_FEATURES, 1, 1)).item() == pytest.approx(0, abs=0.05)


def test_reliability_counts_every_cell_once_up_to_certainty():
    said = torch.tensor([0.0, 0.3, 1.0])
    table = reliability(said, torch.tensor([False, True, True]))
    assert table[:, 0].sum() == 3
    assert table[-1].tolist() == [1, 1, 1]


class Noise:
    """A photograph of soft spots, for pairs whose truth is known."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        spots = np.random.default_rng(index).uniform(0, 255, (60, 80, 3)).astype(np.float32)
        return cv2.resize(spots, (800, 600), interpolation=cv2.INTER_CUBIC).clip(0, 255).astype(np.uint8)

    def other(self, index, rng):
        return 0


@pytest.fixture(scope="module")
def seen():
    """The built-in network without its confidence head, and what it says of a small pair."""
    network = load_network()
    network.confidence_head = None
    view = WarpSettings(homography=1, affine=0, tps=0, mixed=0, moderate=1, rotated=0, strong=0, moderate_rotation=5)
    settings = SyntheticPairSettings(
        size=(256, 320), objects=0, perturbations=False, unrelated=0, mask="none", warp=view
    )
    pairs = list(fixed_pairs(Noise(), 1, 0, settings))
    estimator = Estimator(network)
    estimator = replace(estimator, settings=replace(estimator.settings, min_side=256))
    return estimator, pairs, observe(estimator, pairs)


def test_observations_are_of_cells_that_the_query_shows(seen):
    _, pairs, found = seen
    assert len(found.right) == pytest.approx(pairs[0].visible.sum() / 16, rel=0.1)
    assert found.features.shape == (len(found.right), CONFIDENCE_FEATURES)
    assert torch.isfinite(found.features).all()
    sure = found.stated > 0.3
    assert sure.sum() > 500
    assert found.right[sure].float().mean() > 0.8


@pytest.mark.parametrize("odds", [-1.0, 3.0])
def test_the_estimate_says_what_the_confidence_head_says_and_flow_and_mixture_stay(seen, odds):
    estimator, pairs, _ = seen
    before = estimator.estimate(*(estimator.encode(image) for image in (pairs[0].reference, pairs[0].query)))
    head = ConfidenceHead((4,))
    torch.nn.init.zeros_(head.layers[-1].weight)
    torch.nn.init.constant_(head.layers[-1].bias, odds)
    network = load_network()
    network.confidence_head = head
    judged_by = replace(estimator, network=network)
    after = judged_by.estimate(*(judged_by.encode(image) for image in (pairs[0].reference, pairs[0].query)))
    for name in ("flow", "log_var", "logits"):
        assert np.array_equal(getattr(before, name), getattr(after, name))
    likely = before.confidence > 0.1
    assert likely.sum() > 500
    assert np.allclose(after.confidence[likely], 1 / (1 + np.exp(-odds)), atol=1e-5)
