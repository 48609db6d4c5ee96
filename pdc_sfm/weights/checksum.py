"""A checksum of tensors: safetensors has none, and a flipped bit in a weight would go unnoticed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pdc_sfm.errors import CheckpointError

KEY = "pdc_sfm.crc32"


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """Of all names, shapes and values."""
    total = 0
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        total = zlib.crc32(f"{name} {value.dtype} {tuple(value.shape)}".encode(), total)
        total = zlib.crc32(value.reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"


def verify(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Refuse tensors that are not those the file was written with. Files without a checksum are believed."""
    if KEY in metadata and checksum(tensors) != metadata[KEY]:
        raise CheckpointError(f"{path} is damaged: its checksum is not that of its content; copy or make it again")
