"""Reads tensors from PyTorch files without executing anything in them.

A PyTorch file is a pickle, and a pickle can call any function it names. Here every name resolves to one of a few
functions written in this file, or to an inert placeholder that accepts whatever the pickle does with it.
`torch.load(weights_only=True)` is no less safe, but refuses the authors' training checkpoints: they hold classes of theirs.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from pdc_sfm.errors import CheckpointError
from pdc_sfm.weights.pickles import Names, read_pickle

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_DTYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


def read_torch_file(path: Path) -> Any:
    """The object saved in a .pth, .pt or .pth.tar file, zip or legacy, unknown classes replaced by placeholders."""
    limit = path.stat().st_size
    try:
        if zipfile.is_zipfile(path):
            return _read_zip(path, limit)
        with open(path, "rb") as file:
            return _read_legacy(file, limit)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except Exception as error:  # a damaged pickle can fail in any way; it is never more than an unreadable file
        raise CheckpointError(
            f"{path} is not a readable PyTorch file ({type(error).__name__}: {error}): it may be truncated, download it again"
        ) from None


class Placeholder:
    """Stands for an object of a class that is not loaded: takes any construction, state, item or call, does nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Placeholder:
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Placeholder:
        return Placeholder()

    def __setstate__(self, state: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def append(self, item: Any) -> None:
        pass

    def extend(self, items: Any) -> None:
        pass

    def add(self, item: Any) -> None:
        pass


class _StorageType:
    def __init__(self, dtype: torch.dtype):
        self.dtype = dtype


def _rebuild_tensor(storage: Any, offset: int, size: Sequence[int], stride: Sequence[int], *_rest: Any) -> Tensor:
    if not isinstance(storage, Tensor):
        raise CheckpointError("a tensor without storage")
    if math.prod(size) > storage.numel() or min(size, default=0) < 0:
        raise CheckpointError(
            f"a tensor of {math.prod(size)} values with data of {storage.numel()}: the file is damaged"
        )
    return torch.as_strided(storage, tuple(size), tuple(stride), offset)


def _rebuild_parameter(data: Any, *_rest: Any) -> Any:
    return data


_KNOWN: Names = {
    ("collections", "OrderedDict"): OrderedDict,
    **{(module, name): _StorageType(dtype) for module in ("torch", "torch.storage") for name, dtype in _DTYPES.items()},
    **{("torch._utils", name): _rebuild_tensor for name in ("_rebuild_tensor", "_rebuild_tensor_v2")},
    **{("torch._utils", name): _rebuild_parameter for name in ("_rebuild_parameter", "_rebuild_parameter_with_state")},
}


def _bytes_of(numel: int, dtype: torch.dtype, limit: int) -> int:
    size = numel * torch.empty((), dtype=dtype).element_size()
    if numel < 0 or size > limit:
        raise CheckpointError(f"a tensor of {size} bytes in a file of {limit}: the file is truncated or damaged")
    return size


def _tensor_from(data: bytes, dtype: torch.dtype) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)


def _read_zip(path: Path, limit: int) -> Any:
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: info for info in archive.infolist()}
        pickles = [name for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise CheckpointError("a zip file, but not one written by torch.save")
        prefix = pickles[0].removesuffix("data.pkl")
        order = archive.read(prefix + "byteorder") if prefix + "byteorder" in entries else b"little"
        if order != b"little":
            raise CheckpointError("written on a big-endian machine: save it again on a little-endian one")
        if any(info.file_size > limit for info in entries.values()):
            raise CheckpointError("an entry is larger than the file: the file is damaged")
        storages: dict[str, Tensor] = {}

        def storage(key: str, dtype: torch.dtype, numel: int) -> Tensor:
            if key not in storages:
                name = f"{prefix}data/{key}"
                if name not in entries:
                    raise CheckpointError(f"the data of tensor {key} is missing: the file is damaged")
                storages[key] = _tensor_from(archive.read(name), dtype)
            return storages[key]

        return _unpickle(io.BytesIO(archive.read(pickles[0])), storage)


def _unpickle(file: BinaryIO, storage: Callable[[str, torch.dtype, int], Tensor]) -> Any:
    def persistent(pid: Any) -> Any:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage" and isinstance(pid[1], _StorageType)):
            return Placeholder()
        return storage(str(pid[2]), pid[1].dtype, int(pid[4]))

    return read_pickle(file, _KNOWN, Placeholder, persistent, encoding="utf-8", errors="replace")


def _read_legacy(file: BinaryIO, limit: int) -> Any:
    storages: dict[str, Tensor] = {}

    def storage(key: str, dtype: torch.dtype, numel: int) -> Tensor:
        if key not in storages:
            _bytes_of(numel, dtype, limit)
            storages[key] = torch.empty(numel, dtype=dtype)
        return storages[key]

    def load() -> Any:
        return _unpickle(file, storage)

    if load() != LEGACY_MAGIC:
        raise CheckpointError("a pickle, but not one written by torch.save")
    load(), load()  # protocol version, machine
    content, keys = load(), load()
    for key in keys:
        tensor = storages[str(key)]
        (numel,) = struct.unpack("<q", file.read(8))
        data = file.read(_bytes_of(tensor.numel(), tensor.dtype, limit))
        if numel != tensor.numel() or len(data) < tensor.numel() * tensor.element_size():
            raise CheckpointError("it ends inside a tensor: the file is truncated, download it again")
        tensor.copy_(_tensor_from(data, tensor.dtype))
    return content
