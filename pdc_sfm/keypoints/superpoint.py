"""SuperPoint (DeTone, Malisiewicz, Rabinovich 2018): the architecture. The weights are a file the user supplies."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pdc_sfm.keypoints.types import Keypoints

CELL = 8  # the heads see the image at 1/8 of its resolution


class SuperPoint(nn.Module):
    """A VGG-like encoder with two heads: 8x8 detection cells with a dustbin, and semi-dense descriptors."""

    def __init__(self) -> None:
        super().__init__()
        channels = 1
        for number, width in enumerate((64, 64, 128, 128), 1):
            setattr(self, f"conv{number}a", nn.Conv2d(channels, width, 3, padding=1))
            setattr(self, f"conv{number}b", nn.Conv2d(width, width, 3, padding=1))
            channels = width
        self.convPa = nn.Conv2d(128, 256, 3, padding=1)
        self.convPb = nn.Conv2d(256, CELL**2 + 1, 1)
        self.convDa = nn.Conv2d(128, 256, 3, padding=1)
        self.convDb = nn.Conv2d(256, 256, 1)

    def forward(self, gray: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 1, H, W) in [0, 1] -> scores (B, H', W') of each pixel, unit descriptors (B, 256, H/8, W/8)."""
        x = gray
        for number in range(1, 5):
            x = F.relu(getattr(self, f"conv{number}a")(x))
            x = F.relu(getattr(self, f"conv{number}b")(x))
            x = F.max_pool2d(x, 2) if number < 4 else x
        cells = self.convPb(F.relu(self.convPa(x))).softmax(1)[:, :-1]  # the last channel means "no keypoint here"
        descriptors = F.normalize(self.convDb(F.relu(self.convDa(x))), dim=1)
        return F.pixel_shuffle(cells, CELL)[:, 0], descriptors


def detect(
    network: SuperPoint,
    gray: Tensor,  # (H, W) in [0, 1]
    *,
    max_keypoints: int,
    nms_radius: int = 4,
    threshold: float = 0.005,
    border: int = 4,
) -> Keypoints:
    """Keypoints, scores and descriptors of one gray image, best first."""
    height, width = gray.shape
    with torch.inference_mode():
        scores, coarse = network(_padded(gray)[None, None])
        scores = suppress_neighbors(scores[:, :height, :width], nms_radius)[0]
        rows, columns = torch.nonzero(scores > threshold, as_tuple=True)
        inside = (rows >= border) & (rows < height - border) & (columns >= border) & (columns < width - border)
        rows, columns = rows[inside], columns[inside]
        order = torch.argsort(scores[rows, columns], descending=True, stable=True)[:max_keypoints]
        rows, columns = rows[order], columns[order]
        xy = torch.stack((columns, rows), 1).float()
        descriptors = sample_descriptors(xy, coarse)
    found = scores[rows, columns]
    return Keypoints(xy.cpu().numpy(), found.cpu().numpy(), (width, height), descriptors.cpu().numpy())


def suppress_neighbors(scores: Tensor, radius: int) -> Tensor:
    """(B, H, W) scores with every pixel set to zero that has a better one within `radius` rows and columns.

    Points beaten only by a point that is itself beaten get two more chances, as in the published detector.
    """

    def local_max(values: Tensor) -> Tensor:
        return F.max_pool2d(values[:, None], 2 * radius + 1, stride=1, padding=radius)[:, 0]

    chosen = scores == local_max(scores)
    for _ in range(2):
        taken = local_max(chosen.to(scores.dtype)) > 0
        rest = scores.masked_fill(taken, 0.0)
        chosen |= (rest == local_max(rest)) & ~taken
    return scores.masked_fill(~chosen, 0.0)


def sample_descriptors(xy: Tensor, coarse: Tensor) -> Tensor:
    """Unit descriptors (D, N) at pixels (N, 2), from a map (1, D, H/8, W/8).

    The published sampling is exact at the first cell's center (pixel 3.5) and 3.5 pixels off at the last one;
    the descriptors of published keypoint files are those, so it is kept.
    """
    height, width = coarse.shape[-2:]
    size = xy.new_tensor((width, height)) * CELL
    grid = 2 * (xy - CELL / 2 + 0.5) / (size - CELL / 2 - 0.5) - 1
    sampled = F.grid_sample(coarse, grid[None, None], mode="bilinear", align_corners=True)
    return F.normalize(sampled[0, :, 0], dim=0)


def _padded(gray: Tensor) -> Tensor:
    """Repeat the last row and column up to a multiple of the cell, so that no pixel at the border is lost."""
    height, width = gray.shape
    return F.pad(gray[None], (0, -width % CELL, 0, -height % CELL), mode="replicate")[0]


def gray_of(image: np.ndarray) -> np.ndarray:
    """RGB (H, W, 3) uint8 -> gray (H, W) float32 in [0, 1], with the usual luma weights."""
    import cv2

    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32) / 255
