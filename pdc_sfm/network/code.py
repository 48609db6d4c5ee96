"""The outputs of encoding and decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pdc_sfm.pixels import COARSE_SIDE

MAPS = ("flow", "log_var", "logits", "head_confidence")  # of a LevelOutput, (B, C, h, w) each


@dataclass(frozen=True)
class ImageCode:
    """Everything the network computes from images alone, for a batch of images of one size."""

    features: dict[int, Tensor]  # level -> (B, C, h, w)
    filters: dict[int, Tensor]  # level -> optimized local GOCor filters (B, C, h, w); empty with plain correlation
    size: tuple[int, int]  # (height, width) of the images given
    high_size: tuple[int, int]  # (height, width) at which the full-resolution branch saw them

    def __len__(self) -> int:
        return next(iter(self.features.values())).shape[0]

    def __getitem__(self, index: int) -> ImageCode:
        """The code of one image of the batch."""
        return self.map(lambda x: x[index : index + 1] if index >= 0 else x[index:][:1])

    @property
    def nbytes(self) -> int:
        """Bytes held by the tensors."""
        tensors = [*self.features.values(), *self.filters.values()]
        return sum(t.numel() * t.element_size() for t in tensors)

    def to(self, *target: str | torch.device | torch.dtype) -> ImageCode:
        """As `Tensor.to`, for all tensors: a device, a dtype or both."""
        return self.map(lambda x: x.to(*target))

    def copy(self) -> ImageCode:
        """A code that shares no memory with its batch, so that keeping it does not keep the others."""
        return self.map(torch.clone)

    @staticmethod
    def cat(codes: Sequence[ImageCode]) -> ImageCode:
        """One batch of several codes of the same image size."""
        first = codes[0]
        if any(c.high_size != first.high_size for c in codes):
            raise ValueError("only codes of images of one size can be put in a batch")
        join = lambda name: {k: torch.cat([getattr(c, name)[k] for c in codes]) for k in getattr(first, name)}  # noqa: E731
        return ImageCode(join("features"), join("filters"), first.size, first.high_size)

    @staticmethod
    def cat_both(references: Sequence[ImageCode], queries: Sequence[ImageCode]) -> tuple[ImageCode, ImageCode]:
        """As `cat` of each. Where the second half of the pairs are the first half turned round, one copy serves both."""
        if len(references) == 1:
            return references[0], queries[0]
        half = turned_round(references, queries)
        if not half:
            return ImageCode.cat(references), ImageCode.cat(queries)
        joined = ImageCode.cat([*references, *references[:half]])
        return joined.map(lambda x: x[: 2 * half]), joined.map(lambda x: x[half:])

    @property
    def coarse(self) -> ImageCode:
        """What of it the 256x256 branch compares: images of any size share a batch there."""
        return self._levels((4, 3), (COARSE_SIDE, COARSE_SIDE))

    @property
    def fine(self) -> ImageCode:
        """What of it is compared after that."""
        return self._levels((2, 1, 0), self.high_size)

    def _levels(self, wanted: tuple[int, ...], high_size: tuple[int, int]) -> ImageCode:
        some = lambda maps: {level: maps[level] for level in wanted if level in maps}  # noqa: E731
        return ImageCode(some(self.features), some(self.filters), self.size, high_size)

    def map(self, function: Callable[[Tensor], Tensor]) -> ImageCode:
        """The code whose tensors are a function of this one's."""
        apply = lambda maps: {level: function(x) for level, x in maps.items()}  # noqa: E731
        return ImageCode(apply(self.features), apply(self.filters), self.size, self.high_size)


def turned_round(references: Sequence, queries: Sequence) -> int:
    """How many pairs there are if as many follow that are the same with reference and query exchanged; else 0."""
    half = len(references) // 2
    swapped = [*references[half:], *references[:half]]
    return half if len(references) == 2 * half and all(a is b for a, b in zip(swapped, queries)) else 0


@dataclass(frozen=True)
class LevelOutput:
    """The estimate of one level: a flow and the mixture around it, in pixels of the branch's input."""

    level: int
    flow: Tensor  # (B, 2, h, w): reference pixel x corresponds to query pixel x + flow(x); channel 0 is horizontal
    log_var: Tensor | None  # (B, M, h, w), None for the flow-only baseline
    logits: Tensor | None  # (B, M, h, w)
    reference_size: tuple[int, int]  # (height, width) of the branch's inputs
    query_size: tuple[int, int]
    head_confidence: Tensor | None = None  # (B, 1, h, w) probabilities by a confidence head, after alignment
    number: int = 1  # of the level's passes

    @staticmethod
    def cat(outputs: Sequence[LevelOutput]) -> LevelOutput:
        """One batch of several estimates of one level and size."""
        if len(outputs) == 1:
            return outputs[0]

        def joined(name: str) -> Tensor | None:
            parts = [getattr(output, name) for output in outputs]
            return None if parts[0] is None else torch.cat(parts)

        return outputs[0].with_maps(joined)

    def take(self, rows: Sequence[int]) -> LevelOutput:
        """The estimates of some pairs of the batch."""
        if list(rows) == list(range(len(self.flow))):
            return self
        index = torch.as_tensor(rows, dtype=torch.long, device=self.flow.device)
        taken = {name: None if (x := getattr(self, name)) is None else x[index] for name in MAPS}
        return self.with_maps(taken.__getitem__)

    def detached(self) -> LevelOutput:
        """The same, through which no gradient flows."""
        return self.with_maps(lambda name: None if (x := getattr(self, name)) is None else x.detach())

    def with_maps(self, maps: Callable[[str], Tensor | None]) -> LevelOutput:
        """The same with other maps, by their names."""
        changed: dict[str, Any] = {name: maps(name) for name in MAPS}
        return replace(self, **changed)
