"""Images for sub-pixel alignment: gray and locally normalized, so that the light may differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pdc_sfm.dense.cells import ALL, fused, on_device, planes, sums, upsample
from pdc_sfm.network.code import turned_round
from pdc_sfm.network.warp import resize_area

# Numbers without another source: the card of the built-in model, "Constants of alignment".
LUMA = (0.299, 0.587, 0.114)  # of red, green and blue (ITU-R BT.601)
NEIGHBORHOOD = (1, 1)  # the window that brightness and contrast are measured in, 2.8 px; wider is worse
LEAST_CONTRAST = 0.01  # standard deviation of gray values in [0, 1] below which there is only noise


@dataclass(frozen=True)
class Gray:
    """What alignment wants of an image, made once: it is the query of some pairs and the reference of others."""

    image: Tensor  # (B, 1, H, W) gray values in [0, 1]
    cells: Tensor  # (B, CELL, CELL, h, w) its planes, normalized

    @staticmethod
    def of(image: Tensor) -> Gray:
        """Of gray values (B, 1, H, W)."""
        if fused(image):
            from pdc_sfm.dense import subpixel_gpu

            return Gray(image, subpixel_gpu.as_planes(subpixel_gpu.normalized(image)))
        cells = planes(image)
        return Gray(image, normalized(cells, torch.ones_like(cells[:, 0, :1])))

    @staticmethod
    def cat(grays: Sequence[Gray]) -> Gray:
        """A batch of images of one size."""
        if len(grays) == 1:
            return grays[0]
        image = torch.cat([gray.image for gray in grays])
        return Gray(image, torch.cat([gray.cells for gray in grays]))

    @staticmethod
    def cat_both(references: Sequence[Gray], queries: Sequence[Gray]) -> tuple[Gray, Gray]:
        """As `cat` of each; as `ImageCode.cat_both`."""
        half = turned_round(references, queries)
        if not half:
            return Gray.cat(references), Gray.cat(queries)
        joined = Gray.cat([*references, *references[:half]])
        return Gray(joined.image[: 2 * half], joined.cells[: 2 * half]), Gray(joined.image[half:], joined.cells[half:])

    @property
    def nbytes(self) -> int:
        return self.image.nbytes + self.cells.nbytes


def gray(images: Tensor, size: tuple[int, int]) -> Gray:
    """Of RGB (B, 3, H, W), at a size (height, width): as the full-resolution branch of the network sees them."""
    weights = on_device(LUMA, images.device)
    return Gray.of(resize_area((images * weights).sum(1, keepdim=True), size))


def normalized(image: Tensor, seen: Tensor, taken: tuple[int, ...] = ALL) -> Tensor:
    """Planes with local mean 0 and local standard deviation 1; cells that are not seen (`seen` 0) do not count."""
    moments = torch.cat((image.mean((1, 2))[:, None], (image * image).mean((1, 2))[:, None], seen), 1)
    moments = sums(moments * seen, NEIGHBORHOOD)
    mean, square = (moments[:, :2] / moments[:, 2:].clamp(min=1e-3)).split(1, 1)
    scale = torch.addcmul(square, mean, mean, value=-1).clamp_(min=0).add_(LEAST_CONTRAST**2).rsqrt_()
    scale, shift = upsample(torch.cat((scale, -mean * scale), 1), taken).unbind(1)
    return torch.addcmul(shift, image, scale)
