"""Decoders: a correlation volume becomes a flow (or a map of positions) and a feature of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SLOPE = 0.1  # of every LeakyReLU, as in PWC-Net, whose decoders GLU-Net took over


def conv_bn(
    inputs: int, outputs: int, kernel: int = 3, dilation: int = 1, padding: int | None = None, bias: bool = True
) -> nn.Sequential:
    """Convolution and batch norm; the size is kept unless a padding is given."""
    padding = dilation * (kernel // 2) if padding is None else padding
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, padding=padding, dilation=dilation, bias=bias), nn.BatchNorm2d(outputs)
    )


def leaky(x: Tensor) -> Tensor:
    """The network's activation; in place where no gradient needs the input."""
    return F.leaky_relu(x, SLOPE) if torch.is_grad_enabled() else F.leaky_relu_(x, SLOPE)


def plus(x: Tensor, layer: nn.Sequential, source: Tensor) -> Tensor:
    """x + layer(source), the layer being a 1x1 convolution: one matrix product, once `for_inference` has folded the rest."""
    if torch.is_grad_enabled() or not isinstance(layer[1], nn.Identity) or layer[0].bias is not None:
        return x + layer(source)
    weight = layer[0].weight.flatten(1).to(x.dtype)
    x.flatten(2).baddbmm_(weight.expand(len(x), -1, -1), source.flatten(2))  # a view in both memory formats
    return x


class ResidualDecoder(nn.Module):
    """Two residual blocks of two convolutions, then the output."""

    def __init__(self, inputs: int, channels: tuple[int, ...], outputs: int = 2):
        super().__init__()
        c0, c1, c2, c3, c4 = channels  # as many as there are layers
        self.conv_0 = conv_bn(inputs, c0)
        self.conv_1, self.conv_2 = conv_bn(c0, c1), conv_bn(c1, c2)
        self.conv0_skip = conv_bn(c0, c2, 1, bias=False)
        self.conv_3, self.conv_4 = conv_bn(c2, c3), conv_bn(c3, c4)
        self.conv2_skip = conv_bn(c2, c4, 1, bias=False)
        self.output = nn.Conv2d(c4, outputs, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """-> feature (B, c4, H, W), output (B, outputs, H, W)."""
        a = self.conv_0(x)
        c = plus(self.conv_2(leaky(self.conv_1(F.leaky_relu(a, SLOPE)))), self.conv0_skip, a)
        feature = leaky(plus(self.conv_4(leaky(self.conv_3(F.leaky_relu(c, SLOPE)))), self.conv2_skip, c))
        return feature, self.output(feature)


class Refinement(nn.Module):
    """Dilated convolutions that add context to a decoder's flow."""

    def __init__(self, inputs: int, channels: tuple[int, ...], dilations: tuple[int, ...]):
        super().__init__()
        widths = (inputs, *channels)
        self.layers = nn.ModuleList(conv_bn(a, b, dilation=d) for a, b, d in zip(widths, channels, dilations))
        self.output = nn.Conv2d(channels[-1], 2, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """-> feature, residual flow."""
        for layer in self.layers:
            x = leaky(layer(x))
        return x, self.output(x)
