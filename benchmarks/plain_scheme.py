"""The published scheme written plainly, as the yardstick of `network.py`: the same network and the same numbers.

Every direction of a pair encodes both images and optimizes its own filters, a local correlation is 81 shifted products,
the correlation of the filters is computed anew in every step, and every slice goes through the convolutions as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pdc_sfm.network import ImageCode, PDCNet
from pdc_sfm.network.decoder import SLOPE
from pdc_sfm.network.gocor import LocalGOCor


def shifted_products(reference: Tensor, query: Tensor, radius: int = 4) -> Tensor:
    """Local correlation, one displacement after the other."""
    height, width = reference.shape[-2:]
    padded = F.pad(query, (radius,) * 4)
    side = range(2 * radius + 1)
    return torch.stack(
        [(reference * padded[..., y : y + height, x : x + width]).mean(1) for y in side for x in side], 1
    )


def shifted_sums(weights: Tensor, query: Tensor, radius: int = 4) -> Tensor:
    """The transpose: each pixel's neighbors, weighted and summed."""
    height, width = query.shape[-2:]
    padded = F.pad(query, (radius,) * 4)
    side = 2 * radius + 1
    total = torch.zeros_like(query)
    for k in range(side * side):
        y, x = divmod(k, side)
        total += weights[:, k : k + 1] * padded[..., y : y + height, x : x + width]
    return total / query.shape[1]


class PlainFilters(nn.Module):
    """Local GOCor, three correlations a step."""

    def __init__(self, module: LocalGOCor):
        super().__init__()
        self.module = module

    def forward(self, f: Tensor) -> Tensor:
        g = self.module
        steps = torch.arange(-g.radius, g.radius + 1, dtype=f.dtype)
        distance = torch.hypot(steps[:, None], steps[None]).flatten()
        y, v, m = (x.view(1, -1, 1, 1) for x in g.objective.maps(distance))
        regularization = g.objective.regularization / f.shape[1] ** 2
        w = g.scaling * f / ((f**2).mean(1, keepdim=True) + 1e-6)
        for _ in range(g.iterations):
            c = shifted_products(w, f)
            s, slope = (1 - m) / 2 * c.abs() + (1 + m) / 2 * c, (1 - m) / 2 * c.sign() + (1 + m) / 2
            gradient = shifted_sums(v * slope * (v * s - v * y), f) + regularization * w
            norm = (gradient**2).sum(1, keepdim=True)
            curvature = ((v * slope * shifted_products(gradient, f)) ** 2).sum(1, keepdim=True) + regularization * norm
            w = w - g.objective.log_step_length.exp() * norm / curvature.clamp(min=1e-8) * gradient
        return w


class PlainSlices(nn.Module):
    """The correlation uncertainty module on all slices at once."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, correlation: Tensor) -> Tensor:
        batch, size, height, width = correlation.shape
        side = round(size**0.5)
        slices = correlation.permute(0, 2, 3, 1).reshape(-1, 1, side, side)
        vectors = self.module._rest(self.module.conv_0(slices))
        return vectors.view(batch, height, width, -1).permute(0, 3, 1, 2)


class PlainPDCNet(PDCNet):
    """The plain network around another network's weights."""

    @classmethod
    def of(cls, network: PDCNet) -> PlainPDCNet:
        plain = cls(network.settings)
        plain.load_state_dict(network.state_dict())
        plain.local_gocor = PlainFilters(plain.local_gocor)
        for level in plain.levels.values():
            level.slices = PlainSlices(level.slices)
        return plain.eval()

    @staticmethod
    def _resized(images: Tensor, size: tuple[int, int]) -> Tensor:
        return F.interpolate(images, size, mode="area")

    @staticmethod
    def _compared(reference: ImageCode, query: ImageCode, level: int, scale: float) -> tuple[list[Tensor], Tensor]:
        return [scale * group[level] for group in (reference.features, reference.filters)], query.features[level]

    @staticmethod
    def _correlate(references: list[Tensor], warped: Tensor, radius: int) -> list[Tensor]:
        return [F.leaky_relu(shifted_products(x, warped, radius), SLOPE) for x in references]

    def encode_without_filters(self, images: Tensor) -> ImageCode:
        """A query needs no filters."""
        filters, self.local_gocor = self.local_gocor, nn.Identity()
        try:
            return self.encode(images)
        finally:
            self.local_gocor = filters
