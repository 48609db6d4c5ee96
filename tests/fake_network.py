"""A network that knows brightness alone: two images have the more confident matches, the closer they are in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from pdc_sfm.images import write_image
from pdc_sfm.network import COMPACT, ImageCode, LevelOutput
from pdc_sfm.network.warp import pixel_grid

LOST = 5  # confident cells of the finest level lost for each step of brightness; level 3 loses 4 times as many


class FakeNetwork:
    """Counts what is asked of it. The flow lays one image on the other; cells of the reference beyond the loss are sure."""

    settings = COMPACT

    def __init__(self, stop_after: int | None = None):
        self.encoded_low = self.encoded = self.decoded_low = self.decoded = 0
        self.stop_after = stop_after

    def encode_low(self, images: torch.Tensor) -> ImageCode:
        self.encoded_low += len(images)
        return self._code(images, (256, 256))

    def encode(self, images: torch.Tensor) -> ImageCode:
        self.encoded += len(images)
        return self._code(images, tuple(images.shape[-2:]))

    def _code(self, images: torch.Tensor, high_size: tuple[int, int]) -> ImageCode:
        light = images.mean((1, 2, 3)).view(-1, 1, 1, 1)
        angle = light * torch.pi / 2  # the coarsest features: directions that tell brightnesses apart
        coarse = torch.cat((angle.cos(), angle.sin()), 1).expand(-1, 2, 16, 16)
        features = {4: coarse, 3: light.expand(-1, 1, 32, 32), 2: light}
        return ImageCode(features, {}, tuple(images.shape[-2:]), high_size)

    def decode(
        self,
        reference: ImageCode,
        query: ImageCode,
        last_level: int = 0,
        passes: int | None = None,
        coarse: LevelOutput | None = None,
    ) -> tuple[LevelOutput, ...]:
        low = last_level == 3
        if low and coarse is not None:
            return ()
        self._count(len(reference), low)
        size = (256, 256) if low else reference.high_size
        stride, lost = (8, 4 * LOST) if low else (4, LOST)
        shape = size[0] // stride, size[1] // stride
        level = 3 if low else 2
        steps = (reference.features[level] - query.features[level])[:, 0, 0, 0].abs() * 255
        cells = torch.arange(shape[0] * shape[1]).view(1, 1, *shape)
        sure = cells >= (steps.round() * lost).view(-1, 1, 1, 1)
        logits = torch.cat((torch.where(sure, 10.0, -10.0), torch.zeros(len(sure), 1, *shape)), 1)
        log_var = torch.cat((torch.zeros_like(logits[:, :1]), torch.full_like(logits[:, :1], 12.0)), 1)
        sizes = ((256, 256),) * 2 if low else (reference.high_size, query.high_size)
        grow = torch.tensor([there / here - 1 for here, there in zip(*sizes)][::-1]).view(1, 2, 1, 1)
        centers = (pixel_grid(*shape, like=log_var) + 0.5) * stride
        flow = (centers * grow).expand(len(sure), -1, -1, -1)
        return (LevelOutput(3 if low else 1, flow, log_var, logits, *sizes),)

    def _count(self, pairs: int, low: bool) -> None:
        self.decoded_low += pairs * low
        self.decoded += pairs * (not low)
        if self.stop_after is not None and self.decoded_low + self.decoded > self.stop_after:
            raise KeyboardInterrupt


def gray_images(folder: Path, brightness: dict[str, int], size: tuple[int, int] = (64, 48)) -> None:
    """Images of one tone each."""
    for name, value in brightness.items():
        write_image(folder / name, np.full((size[1], size[0], 3), value, np.uint8))
