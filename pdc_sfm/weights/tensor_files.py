"""Safetensors files with a checksum, which the format lacks: a flipped bit in a weight would go unnoticed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pdc_sfm.errors import CheckpointError
from pdc_sfm.files import atomic_path

KEY = "pdc_sfm.crc32"


def write_safetensors(path: Path | str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """At once or not at all: a full disk is an error that leaves the file as it was."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        with atomic_path(path) as partial:
            save_file(dict(tensors), partial, metadata={**metadata, KEY: checksum(tensors)})
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot save {path}: {error}; what was saved before is intact") from None


def read_safetensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata, which fit together even if another process replaces the file: it is opened once."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        data = Path(path).read_bytes()
        tensors = load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} is not a readable safetensors file ({error}): it may be truncated") from None
    metadata = header.get("__metadata__") or {}
    if KEY in metadata and checksum(tensors) != metadata[KEY]:
        raise CheckpointError(f"{path} is damaged: its checksum is not that of its content; copy or make it again")
    return tensors, metadata


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """Of all names, shapes and values."""
    total = 0
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        total = zlib.crc32(f"{name} {value.dtype} {tuple(value.shape)}".encode(), total)
        total = zlib.crc32(value.reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"
