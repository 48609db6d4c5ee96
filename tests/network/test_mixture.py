"""The mixture of Laplace distributions against direct evaluation."""

import math

import numpy as np
import pytest
import torch

from pdc_sfm.errors import SettingsError
from pdc_sfm.network import MixtureSettings
from pdc_sfm.network.mixture import Constraint, nll, p_r, variance


def density(y, mu, variances, weights):
    """Eq. 1 and 2, term by term, in float64."""
    total = 0.0
    for sigma2, alpha in zip(variances, weights):
        sigma = math.sqrt(sigma2)
        total += alpha * np.prod(
            [math.exp(-math.sqrt(2) * abs(a - b) / sigma) / (math.sqrt(2) * sigma) for a, b in zip(y, mu)]
        )
    return total


def as_map(values):
    return torch.tensor(values, dtype=torch.float64).view(1, -1, 1, 1)


MIXTURES = [((1.0,), (1.0,)), ((1.0, 30.0), (0.7, 0.3)), ((1.0, 9.0, 5000.0), (0.2, 0.5, 0.3))]


@pytest.mark.parametrize(("variances", "weights"), MIXTURES)
def test_likelihood_is_the_density(variances, weights):
    flow, target = (3.0, -2.0), (3.7, -5.0)
    value = nll(as_map(flow), as_map(variances).log(), as_map(weights).log(), as_map(target))
    assert value.item() == pytest.approx(-math.log(density(target, flow, variances, weights)), rel=1e-12)


def test_likelihood_stays_finite_far_away():
    flow = as_map((0.0, 0.0)).requires_grad_()
    value = nll(flow, as_map((0.0, 1.0)), as_map((300.0, -300.0)), as_map((1e4, 1e4)))
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(flow.grad).all()


@pytest.mark.parametrize(("variances", "weights"), MIXTURES)
@pytest.mark.parametrize("radius", [0.5, 1.0, 5.0])
def test_p_r_is_the_integral_of_the_density_over_the_square(variances, weights, radius):
    n = 20000
    steps = (np.arange(n) + 0.5) / n * 2 * radius - radius  # midpoints; the two directions are independent
    integral = 0.0
    for sigma2, alpha in zip(variances, weights):
        line = np.exp(-math.sqrt(2 / sigma2) * np.abs(steps)) / math.sqrt(2 * sigma2)
        integral += alpha * (line.sum() * 2 * radius / n) ** 2
    assert p_r(as_map(variances).log(), as_map(weights).log(), radius).item() == pytest.approx(integral, rel=1e-6)


def test_variance_is_the_weighted_sum():
    assert variance(as_map((1.0, 9.0)).log(), as_map((0.75, 0.25)).log()).item() == pytest.approx(3.0)


def test_p_1_never_exceeds_0_573():
    surest = p_r(as_map((0.0, 5.0)), as_map((50.0, -50.0)), 1.0).item()
    assert surest == pytest.approx(0.573, abs=5e-4)


def test_two_components_stay_within_their_bounds():
    constraint = Constraint(MixtureSettings(), 256**2)
    assert constraint.inputs == 1
    log_var = constraint(torch.linspace(-40, 60, 101, dtype=torch.float64).view(1, 1, 1, -1))
    assert torch.equal(log_var[:, 0], torch.zeros_like(log_var[:, 0]))
    assert log_var[:, 1].exp().min() >= 2
    assert log_var[:, 1].exp().max() <= 256**2 * (1 + 1e-9)
    assert log_var[0, 1, 0, -1].exp().item() == pytest.approx(256**2)


def test_the_third_component_is_the_upper_bound_of_the_second():
    log_var = Constraint(MixtureSettings(components=3), 256**2)(torch.zeros(1, 1, 2, 2, dtype=torch.float64))
    assert log_var.shape == (1, 3, 2, 2)
    assert log_var[0, 2].exp().allclose(torch.tensor(256.0**2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("settings", "inputs"),
    [
        (MixtureSettings(components=1), 1),
        (MixtureSettings(components=1, constrained=False), 1),
        (MixtureSettings(constrained=False), 2),
        (MixtureSettings(first="bounded", upper="infinite"), 2),
        (MixtureSettings(components=3, learned_bounds=True), 1),
    ],
)
def test_every_parametrization_gives_ordered_finite_variances(settings, inputs):
    constraint = Constraint(settings, 256**2)
    assert constraint.inputs == inputs
    log_var = constraint(torch.randn(2, inputs, 4, 4))
    assert log_var.shape[1] == settings.components
    assert torch.isfinite(log_var).all()
    if settings.constrained:
        assert (log_var.diff(dim=1) >= -1e-5).all()


def test_learned_bounds_start_at_the_paper_s_and_receive_gradients():
    learned, fixed = (Constraint(MixtureSettings(learned_bounds=flag), 520**2) for flag in (True, False))
    h = torch.randn(1, 1, 3, 3)
    assert torch.allclose(learned(h), fixed(h), atol=1e-4)
    learned(h).sum().backward()
    assert learned.lower.grad != 0
    assert learned.upper.grad != 0


def test_bounds_cannot_be_learned_where_there_are_none():
    with pytest.raises(SettingsError, match="learned_bounds"):
        MixtureSettings(constrained=False, learned_bounds=True)
