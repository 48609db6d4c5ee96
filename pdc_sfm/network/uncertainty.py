"""Uncertainty: features of each pixel's correlation slice, and the mixture predicted from them (Sec. 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pdc_sfm.network.constants import channels, chunk_size
from pdc_sfm.network.decoder import conv_bn, leaky

CHUNK = 2048  # slices processed together: their largest activations, 7 x 7 x 32 each, are 13 MB, and stay in a processor's cache


class SliceModule(nn.Module):
    """The correlation uncertainty module: each pixel's correlation slice is an image of its own.

    A slice of 9x9 (or 16x16, with pooling) displacements shrinks to one vector by unpadded 3x3 convolutions.
    """

    def __init__(self, channels: tuple[int, int, int, int], pool: bool = False):
        super().__init__()
        c0, c1, c2, c3 = channels
        self.pool = nn.MaxPool2d(2) if pool else nn.Identity()
        self.conv_0, self.conv_1 = conv_bn(1, c0, padding=0), conv_bn(c0, c1, padding=0)
        self.conv_2 = conv_bn(c1, c2, padding=0)
        self.output = nn.Conv2d(c2, c3, 3)

    def forward(self, correlation: Tensor) -> Tensor:
        """(B, d*d, H, W) -> (B, c3, H, W)."""
        batch, size, height, width = correlation.shape
        side = round(size**0.5)
        slices = correlation.permute(0, 2, 3, 1).reshape(-1, 1, side, side)
        if self.training:
            vectors = self._rest(self.conv_0(slices))
        else:
            matrix, bias = self._first_as_matrix(side, slices)
            chunk = chunk_size(CHUNK, 4 * matrix.shape[1], slices.device)
            parts = slices.flatten(1).split(slices.shape[0] if torch.is_grad_enabled() else chunk)
            vectors = torch.cat([self._rest(self._first(part, matrix, bias)) for part in parts])
        return vectors.view(batch, height, width, -1).permute(0, 3, 1, 2)

    def _first_as_matrix(self, side: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """The first convolution has one input channel, too few for a fast convolution: it becomes a matrix product.

        Applied to the basis images it gives the rows of its matrix: (d*d, (d-2)*(d-2)*c0), channels last.
        """
        basis = torch.eye(side * side, device=like.device, dtype=like.dtype).view(-1, 1, side, side)
        rows = self.conv_0(torch.cat((basis, torch.zeros_like(basis[:1])))).permute(0, 2, 3, 1).flatten(1)
        return rows[:-1] - rows[-1], rows[-1]

    def _first(self, slices: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
        side = round(slices.shape[1] ** 0.5) - 2
        return torch.addmm(bias, slices, matrix).view(len(slices), side, side, -1).permute(0, 3, 1, 2)

    def _rest(self, x: Tensor) -> Tensor:
        x = self.pool(leaky(x))
        return self.output(leaky(self.conv_2(leaky(self.conv_1(x))))).flatten(1)


class SliceMLP(nn.Module):
    """A cheaper slice module: fully connected layers on each pixel's slice."""

    def __init__(self, inputs: int, channels: tuple[int, int, int, int]):
        super().__init__()
        c0, c1, c2, c3 = channels
        self.conv_0, self.conv_1 = conv_bn(inputs, c0, 1), conv_bn(c0, c1, 1)
        self.conv_2, self.output = conv_bn(c1, c2, 1), nn.Conv2d(c2, c3, 1)

    def forward(self, correlation: Tensor) -> Tensor:
        x = leaky(self.conv_2(leaky(self.conv_1(leaky(self.conv_0(correlation))))))
        return x if self.output is None else self.output(x)

    @torch.no_grad()
    def fold(self, following: nn.Conv2d) -> None:
        """Let the layer after the last one do its work, whose input then ends with a map of ones: there its bias is (`ones`)."""
        if self.output is None:
            return
        width, weight = self.output.out_channels, following.weight
        mine = torch.einsum("oikl,ij->ojkl", weight[:, :width], self.output.weight[:, :, 0, 0])
        bias = torch.einsum("oikl,i->okl", weight[:, :width], self.output.bias)[:, None]
        following.weight = nn.Parameter(torch.cat((mine, weight[:, width:], bias), 1), False)
        following.in_channels, self.output = following.weight.shape[1], None

    def ones(self, like: Tensor) -> list[Tensor]:
        """What comes last of the input of the layer that follows."""
        return [] if self.output is not None else [channels((1.0,), like.device, like.dtype).expand_as(like[:, :1])]


class Predictor(nn.Module):
    """The uncertainty predictor: slice vector, flow feature and the level before -> h and the mixture's logits."""

    def __init__(self, inputs: int, channels: tuple[int, int], outputs: int):
        super().__init__()
        self.conv_0, self.conv_1 = conv_bn(inputs, channels[0]), conv_bn(channels[0], channels[1])
        self.output = nn.Conv2d(channels[1], outputs, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(leaky(self.conv_1(leaky(self.conv_0(x)))))
