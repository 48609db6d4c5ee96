"""Tensors out of PyTorch files without executing anything in them.

A PyTorch file is a pickle, and a pickle can call any function it names. Here every name resolves to one of a few
functions written in this file, or to an inert placeholder that accepts whatever the pickle does with it.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from pdc_sfm.errors import CheckpointError

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

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return Placeholder()

    def __setstate__(self, state):
        pass

    def __setitem__(self, key, value):
        pass

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def add(self, item):
        pass


class _StorageType:
    def __init__(self, dtype: torch.dtype):
        self.dtype = dtype


def _rebuild_tensor(storage, offset, size, stride, *_rest) -> Tensor:
    if not isinstance(storage, Tensor):
        raise CheckpointError("a tensor without storage")
    if math.prod(size) > storage.numel() or min(size, default=0) < 0:
        raise CheckpointError(
            f"a tensor of {math.prod(size)} values with data of {storage.numel()}: the file is damaged"
        )
    return torch.as_strided(storage, tuple(size), tuple(stride), offset)


def _rebuild_parameter(data, *_rest):
    return data


class _TensorUnpickler(pickle.Unpickler):
    """Resolves names to the few constructors a state dict needs and everything else to placeholders."""

    def __init__(self, file: BinaryIO, storage):
        super().__init__(file, encoding="utf-8", errors="replace")
        self._storage = storage

    def find_class(self, module: str, name: str) -> Any:
        if module == "collections" and name == "OrderedDict":
            return OrderedDict
        if module in ("torch", "torch.storage") and name in _DTYPES:
            return _StorageType(_DTYPES[name])
        if module == "torch._utils" and name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch._utils" and name in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
            return _rebuild_parameter
        return Placeholder

    def persistent_load(self, pid: Any) -> Any:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage" and isinstance(pid[1], _StorageType)):
            return Placeholder()
        return self._storage(str(pid[2]), pid[1].dtype, int(pid[4]))


def check_opcodes(file: BinaryIO) -> None:
    """Walk through a pickle without building anything; the file is then where it was.

    The unpickler takes lengths and places in its memory on trust: a single damaged byte can make it ask for 30 GB.
    """
    start = file.tell()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= argument <= number:
            raise CheckpointError(f"a pickle that remembers {argument} things: the file is damaged")
    file.seek(start)


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


def _unpickle(file: BinaryIO, storage) -> Any:
    check_opcodes(file)
    return _TensorUnpickler(file, storage).load()


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
