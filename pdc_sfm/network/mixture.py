"""The constrained mixture of Laplace distributions (Sec. 3.2): parametrization, confidence, variance, likelihood."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pdc_sfm.network.constants import channels
from pdc_sfm.network.settings import MixtureSettings

SQRT2 = math.sqrt(2.0)
ROOT = math.exp(-0.5)  # to the power of a log-variance: one over its standard deviation


def at_least_float32(x: Tensor) -> Tensor:
    """As it is, or in float32 if it has 16 bits."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


class Constraint(nn.Module):
    """Maps the predicted h to log-variances within each component's bounds (Eq. 3-4), for one branch."""

    def __init__(self, settings: MixtureSettings, area: int):
        super().__init__()
        self.settings = settings
        self.area = area
        self.folded = False
        if settings.learned_bounds:  # lower = 1 + softplus(a), upper = lower + exp(b): the order of Eq. 3 holds
            self.lower = nn.Parameter(torch.tensor(math.log(math.e - 1)))
            self.upper = nn.Parameter(torch.tensor(math.log(area - 2.0)))

    @property
    def is_fixed(self) -> bool:
        """Whether the upper bound is the area."""
        m = self.settings
        return m.constrained and m.upper == "image" and not m.learned_bounds

    @property
    def inputs(self) -> int:
        """How many h the network must predict."""
        m = self.settings
        if not m.constrained or m.components == 1:
            return m.components
        if self.folded:
            return 4
        return 2 if m.first == "bounded" else 1

    def forward(self, h: Tensor) -> Tensor:
        """h (B, inputs, H, W) -> log-variances (B, M, H, W), in float32 at least: 16 bits cannot hold an image's area."""
        m = self.settings
        h = at_least_float32(h)
        if not m.constrained:
            return h
        if m.components == 1:
            return self._bounded(h, 1.0)
        if m.components == 2 and m.first == "fixed" and self.is_fixed:  # sigma_1 = 1, between bounds that are both 1
            if self.folded:
                return self._of_folded(h)
            lower, range_ = (channels(x, h.device, h.dtype) for x in ((1.0, 2.0), (0.0, self.area - 2.0)))
            return torch.addcmul(lower, range_, self._share(h)).log()
        second = self._bounded(h[:, -1:], 2.0)
        if m.components == 3:  # the outliers' own component: sigma_3^2 = beta_2^+ (appendix, number of components)
            second = torch.cat((second, self._widest(second)), 1)
        if m.first == "bounded":
            return torch.cat((F.logsigmoid(h[:, :1]), second), 1)
        return F.pad(second, (0, 0, 0, 0, 1, 0))  # sigma_1 = 1: its logarithm is zero

    def _widest(self, like: Tensor) -> Tensor:
        if self.settings.learned_bounds:
            return torch.zeros_like(like) + self._learned()[1].log()
        return torch.full_like(like, math.log(self.area))

    def _learned(self) -> tuple[Tensor, Tensor]:
        """The bounds of sigma_2^2."""
        lower = 1 + F.softplus(self.lower)
        return lower, lower + self.upper.exp()

    def _bounded(self, h: Tensor, lower: float) -> Tensor:
        if self.settings.upper == "infinite":
            return torch.log(lower + h.exp())
        if self.settings.learned_bounds:
            low, upper = self._learned()
            return torch.log(low + (upper - low) * torch.sigmoid(h - upper.log()))
        return torch.rsub(
            self._share(h), lower, alpha=lower - self.area
        ).log()  # low + (B - low) * share, in one kernel

    def _share(self, h: Tensor) -> Tensor:
        """How far a variance lies from its lower to its upper bound."""
        return torch.sigmoid(h - math.log(self.area))  # the shift makes h = 0 a small variance

    @torch.no_grad()
    def fold(self, layer: nn.Conv2d) -> None:
        """Let the layer that predicts h and the logits repeat and shift h, so that two operations are left of Eq. 3-4.

        log(l + (B - l) sigmoid(h - log B)) = log(e^(h + log B) + l B) - log(e^h + B); with l = B it is 0, sigma_1 = 1's.
        """
        m = self.settings
        if self.folded or not (self.is_fixed and m.components == 2 and m.first == "fixed"):
            return
        rows = [0, 0, 0, 0, *range(1, layer.out_channels)]
        layer.weight, layer.bias = nn.Parameter(layer.weight[rows], False), nn.Parameter(layer.bias[rows], False)
        layer.bias[1] += math.log(self.area)
        layer.out_channels, self.folded = len(rows), True

    def _of_folded(self, h: Tensor) -> Tensor:
        area = math.log(self.area)
        sums = torch.logaddexp(h, channels((area, area + math.log(2), area, area), h.device, h.dtype))
        return sums[:, :2] - sums[:, 2:]


def p_r(log_var: Tensor, logits: Tensor, radius: float = 1.0, unit: float = 1.0) -> Tensor:
    """P(|y - mu|_inf < R), Eq. 7, in units of a probability: (B, M, H, W) twice -> (B, 1, H, W)."""
    along_axis = torch.expm1(-SQRT2 * radius * torch.pow(ROOT, log_var))  # minus the probability along x, or y
    nothing = channels((0.0,), log_var.device, log_var.dtype)
    within = torch.addcmul(nothing, along_axis, along_axis, value=1 / unit)
    weights = torch.softmax(logits, 1)
    if logits.shape[1] == 2:  # the same, faster
        return torch.lerp(within[:, 1:], within[:, :1], weights[:, :1])
    return (weights * within).sum(1, keepdim=True)


def highest_p_r(settings: MixtureSettings, radius: float = 1.0) -> float:
    """What P_R never exceeds, all weight being on the narrowest component: 0.573 for R = 1 and sigma_1 = 1."""
    if not settings.constrained or (settings.components > 1 and settings.first == "bounded"):
        return 1.0  # as narrow as may be
    return (1 - math.exp(-SQRT2 * radius)) ** 2


def variance(log_var: Tensor, logits: Tensor) -> Tensor:
    """Variance of the mixture, sum of alpha_m sigma_m^2: (B, 1, H, W)."""
    return (torch.softmax(logits, 1) * log_var.exp()).sum(1, keepdim=True)


def nll(flow: Tensor, log_var: Tensor, logits: Tensor, target: Tensor) -> Tensor:
    """-log p(target) per pixel, in the stable form of appendix B.1: (B, 1, H, W)."""
    distance = (target - flow).abs().sum(1, keepdim=True)
    exponent = logits - math.log(2.0) - log_var - SQRT2 * torch.exp(-0.5 * log_var) * distance
    return torch.logsumexp(logits, 1, keepdim=True) - torch.logsumexp(exponent, 1, keepdim=True)
