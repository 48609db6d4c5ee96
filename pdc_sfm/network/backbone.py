"""Backbones: an image becomes feature maps, one per stride."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from pdc_sfm.network import constants
from pdc_sfm.network.decoder import SLOPE
from pdc_sfm.network.settings import NetworkSettings

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet
Padding = tuple[int, int]  # before and after


def build_backbone(settings: NetworkSettings) -> nn.Module:
    """The backbone of one branch: `forward(image, strides) -> {stride: features}` and `channels[stride]`."""
    if settings.backbone == "vgg16":
        return VGG16()
    return FeaturePyramid(EfficientNetLite0(), settings.pyramid_channels)


def normalize_image(image: Tensor) -> Tensor:
    """RGB in [0, 1] -> zero mean and unit variance over ImageNet."""
    mean, std = (constants.channels(v, image.device, image.dtype) for v in (MEAN, STD))
    return (image - mean) / std


class VGG16(nn.Module):
    """The convolutions of VGG-16 up to its fourth pooling."""

    channels: ClassVar = {4: 128, 8: 256, 16: 512}  # stride -> channels

    def __init__(self) -> None:
        super().__init__()
        self.level_0 = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(inplace=True))
        self.level_1 = self._level(64, 64)
        self.level_2 = self._level(64, 128, 128)
        self.level_3 = self._level(128, 256, 256, 256)
        self.level_4 = self._level(256, 512, 512, 512)

    @staticmethod
    def _level(inputs: int, *outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for channels in outputs:
            layers += [nn.Conv2d(inputs, channels, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = channels
        return nn.Sequential(*layers, nn.MaxPool2d(2))

    def forward(self, image: Tensor, strides: tuple[int, ...]) -> dict[int, Tensor]:
        x = self.level_2(self.level_1(self.level_0(normalize_image(image))))
        maps = {4: x}
        for stride, level in ((8, self.level_3), (16, self.level_4)):
            if stride > max(strides):
                break
            maps[stride] = x = level(x)
        return {stride: maps[stride] for stride in strides}


class _Conv(nn.Module):
    """Convolution with bias and explicit (left, right) padding; batch norm is folded into it."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        padding: Padding | None = None,
        relu: bool = True,
    ):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, groups=groups)
        self.padding = (kernel // 2, kernel // 2) if padding is None else padding
        if self.padding[0] == self.padding[1]:
            self.conv.padding = self.padding
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        before, after = self.padding
        if before != after:
            x = F.pad(x, (before, after, before, after))
        x = self.conv(x)
        return F.relu6(x, inplace=True) if self.relu else x  # of a map that nothing else holds


class _InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int, padding: Padding | None):
        super().__init__()
        width = inputs * expansion
        self.expand = _Conv(inputs, width, 1) if expansion > 1 else nn.Identity()
        self.depthwise = _Conv(width, width, kernel, stride, groups=width, padding=padding)
        self.project = _Conv(width, outputs, 1, relu=False)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.depthwise(self.expand(x)))
        return y.add_(x) if self.residual else y


class EfficientNetLite0(nn.Module):
    """EfficientNet-lite0 up to stride 16.

    Where it halves the resolution the padding falls alternately on both sides, so that features stay within a fifth of
    a cell of the cell's center (on one side, as in training for classification, they drift to half a cell).
    """

    channels: ClassVar = {2: 16, 4: 24, 8: 40, 16: 112}
    ends: ClassVar = {2: 1, 4: 3, 8: 5, 16: 11}  # stride -> blocks up to its features
    # kernel, stride, expansion, channels, repeats, padding of the first block
    stages = (
        (3, 1, 1, 16, 1, None),
        (3, 2, 6, 24, 2, (1, 0)),
        (5, 2, 6, 40, 2, (1, 2)),
        (3, 2, 6, 80, 3, (1, 0)),
        (5, 1, 6, 112, 3, None),
    )

    def __init__(self) -> None:
        super().__init__()
        self.stem = _Conv(3, 32, 3, 2, padding=(0, 1))
        blocks, inputs = [], 32
        for kernel, stride, expansion, channels, repeats, padding in self.stages:
            for i in range(repeats):
                first = i == 0
                blocks.append(
                    _InvertedResidual(
                        inputs, channels, kernel, stride if first else 1, expansion, padding if first else None
                    )
                )
                inputs = channels
        self.blocks = nn.ModuleList(blocks)

    def forward(self, image: Tensor, strides: tuple[int, ...]) -> dict[int, Tensor]:
        ends = {self.ends[stride]: stride for stride in strides}
        x, maps = self.stem(normalize_image(image)), {}
        for i, block in enumerate(self.blocks[: max(ends)], start=1):
            x = block(x)
            if i in ends:
                maps[ends[i]] = x
        return maps


class FeaturePyramid(nn.Module):
    """Features of a backbone with context from coarser strides: a top-down pyramid of given widths."""

    def __init__(self, backbone: nn.Module, channels: tuple[int, ...]):
        super().__init__()
        self.backbone = backbone
        self.strides = (16, 8, 4, 2)[: len(channels)]
        self.channels = dict(zip(self.strides, channels))
        self.lateral = nn.ModuleDict({str(s): nn.Conv2d(backbone.channels[s], c, 1) for s, c in self.channels.items()})
        self.down = nn.ModuleDict(
            {str(s // 2): nn.Conv2d(self.channels[s], self.channels[s // 2], 1) for s in self.strides[:-1]}
        )
        self.output = nn.ModuleDict({str(s): nn.Conv2d(c, c, 3, padding=1) for s, c in self.channels.items()})

    def forward(self, image: Tensor, strides: tuple[int, ...]) -> dict[int, Tensor]:
        used = [s for s in self.strides if s >= min(strides)]
        maps = self.backbone(image, tuple(used))
        result, above = {}, None
        for stride in used:
            x = self.lateral[str(stride)](maps[stride])
            if above is not None:
                context = self.down[str(stride)](above)
                x = x + F.interpolate(context, x.shape[-2:], mode="bilinear", align_corners=False)
            above = F.leaky_relu(x, SLOPE)
            if stride in strides:
                result[stride] = x + self.output[str(stride)](above)
        return result
