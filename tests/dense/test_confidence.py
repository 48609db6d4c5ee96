"""Confidence is one probability a cell: a head's where there is one, else P_R of the mixture, wherever it is carried."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pdc_sfm.dense.confidence import confidence_map, head_confidence
from pdc_sfm.dense.estimate import DenseEstimate, from_level, on_host
from pdc_sfm.dense.field import field_from, field_of
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.errors import SettingsError
from pdc_sfm.matcher import Matcher, PairSettings
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.matches.snap import SnapSettings
from pdc_sfm.network import LevelOutput, NetworkSettings
from pdc_sfm.network.mixture import highest_p_r
from pdc_sfm.network.settings import MixtureSettings
from pdc_sfm.weights import load_network

SIZE = (64, 48)  # width, height
P_1 = (1 - np.exp(-np.sqrt(2))) ** 2  # of a component of sigma 1


def output(stated=None):
    """A mixture with all its weight on sigma 1, flow 0, and what a head says."""
    maps = torch.zeros(1, 2, 12, 16), torch.zeros(1, 2, 12, 16), torch.tensor([50.0, -50.0]).view(1, 2, 1, 1)
    flow, log_var, logits = (x.expand(1, 2, 12, 16) for x in maps)
    return LevelOutput(1, flow, log_var, logits, SIZE[::-1], SIZE[::-1], stated)


def ramp():
    """From 0 to 1 along x."""
    return torch.linspace(0, 1, 16).expand(1, 1, 12, 16)


def test_a_head_gives_the_probability_of_its_log_odds_all_the_way_up():
    odds = torch.tensor([-100.0, -2.0, 0.0, float(np.log(3)), 5.0, 100.0]).view(1, 1, 1, 6)
    expected = torch.tensor([0.0, 1 / (1 + np.e**2), 0.5, 0.75, 1 / (1 + np.e**-5), 1.0]).view(1, 1, 1, 6)
    torch.testing.assert_close(head_confidence(torch.nn.Identity(), odds), expected)
    assert head_confidence(None, odds) is None


def test_without_a_head_it_is_the_mixtures():
    for estimate in (from_level(output(), SIZE, SIZE), from_level(on_host(output()), SIZE, SIZE)):
        np.testing.assert_allclose(estimate.confidence, P_1, rtol=1e-5)
        assert estimate.confidence.shape == (12, 16)
        assert estimate.confidence.dtype == np.float32
    np.testing.assert_allclose(field_of(output(), SIZE, SIZE).confidence_within(1.0), P_1, rtol=1e-5)


def test_what_a_head_states_is_carried_everywhere():
    estimate = from_level(output(ramp()), SIZE, SIZE)
    expected = ramp()[0, 0].numpy()
    np.testing.assert_array_equal(estimate.confidence, expected)
    for field in (field_of(output(ramp()), SIZE, SIZE), field_from(estimate)):
        np.testing.assert_array_equal(field.confidence_within(1.0)[0, 0], expected)
    # centers of cells lie at 1.5, 5.5 ... and 61.5; half-way between two of them it is their mean
    at = estimate.sample(np.array([[1.5, 9.5], [31.5, 9.5], [61.5, 9.5]]))
    np.testing.assert_allclose(at.confidence_within(1.0), [0, 0.5, 1], atol=1e-6)
    np.testing.assert_allclose(estimate.resampled((32, 24)).confidence.mean(), 0.5, atol=1e-6)
    left = estimate.over_image((128, 48), np.eye(3), (32, 12))  # the view is the left half of an image
    np.testing.assert_allclose(left.confidence[:, :16], expected, atol=1e-6)


def test_what_one_estimate_does_not_show_is_filled_with_the_others_confidence():
    headed, plain = from_level(output(ramp()), SIZE, SIZE), from_level(output(), SIZE, SIZE)
    valid = np.arange(16) < 8
    for estimate, other in ((headed, plain), (plain, headed)):
        both = replace(estimate, valid=estimate.valid & valid).filled_from(other)
        assert both.valid.all()
        np.testing.assert_array_equal(both.confidence[:, :8], estimate.confidence[:, :8])
        np.testing.assert_array_equal(both.confidence[:, 8:], other.confidence[:, 8:])
    bare = DenseEstimate(headed.flow, None, None, headed.valid & valid, SIZE, SIZE)
    assert bare.filled_from(replace(bare, valid=~valid & headed.valid)).valid.all()


def test_a_head_speaks_of_one_pixel_and_of_no_other_radius():
    stated = ramp()
    assert confidence_map(stated, None, None) is stated
    estimate = from_level(output(stated), SIZE, SIZE)
    for refused in (estimate.confidence_within, field_from(estimate).confidence_within):
        with pytest.raises(
            SettingsError, match="radius=3: these weights state the probability of an error below 1 pixel"
        ):
            refused(3.0)


@pytest.mark.parametrize("part", [{"select": SelectSettings(radius=2)}, {"snap": SnapSettings(radius=2)}])
def test_a_matcher_says_so_before_it_begins(part):
    network = load_network()
    with pytest.raises(SettingsError, match="leave it at 1"):
        Matcher(network, PairSettings(**part))
    Matcher(network, PairSettings(DenseSettings(subpixel=False), **part))  # P_R of the mixture


def test_a_threshold_that_a_mixture_never_exceeds_is_refused(ideal_network):
    high = PairSettings(select=SelectSettings(threshold=0.6))
    with pytest.raises(
        SettingsError, match=r"0\.6 keeps nothing: with radius=1, P_R of this network never exceeds 0\.573"
    ):
        Matcher(ideal_network(), high)
    Matcher(ideal_network(), PairSettings(select=SelectSettings(threshold=0.6, radius=2)))  # up to .885
    Matcher(load_network(), high)  # a head's probability goes up to 1
    assert highest_p_r(NetworkSettings().mixture) == pytest.approx(P_1)
    assert highest_p_r(MixtureSettings(first="bounded")) == 1
