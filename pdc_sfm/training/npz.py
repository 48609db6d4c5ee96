"""Arrays of Python objects out of .npz files of others, without executing anything in them.

Such arrays are pickles, and a pickle can call any function it names. Here only the names by which numpy stores its own
arrays and numbers are known; anything else is refused.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.weights import pickles


def _reconstruct(kind: type, shape: tuple[int, ...], code: bytes) -> np.ndarray:
    """An empty array, which the pickle then fills. numpy itself begins with none of any size."""
    if math.prod(shape) != 0:
        raise FormatError(f"an array of {math.prod(shape)} values that are not there")
    return np.ndarray(shape, np.dtype(code.decode()))


def _scalar(dtype: np.dtype, data: bytes) -> np.generic:
    return np.frombuffer(data, dtype, 1)[0]


def _latin1(text: str, codec: str) -> bytes:
    """How Python 3 writes bytes into pickles that Python 2 shall read."""
    return text.encode("latin1")


def _from_buffer(data: bytes, dtype: np.dtype, shape: tuple[int, ...], order: Literal["A", "C", "F"]) -> np.ndarray:
    """How newer pickles hold arrays."""
    return np.frombuffer(data, dtype).reshape(shape, order=order)


_KNOWN: pickles.Names = {
    (f"numpy.{core}multiarray", name): function
    for core in ("core.", "_core.")
    for name, function in (("_reconstruct", _reconstruct), ("scalar", _scalar))
} | {
    ("numpy", "ndarray"): object(),  # only ever named, never called
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
    ("__builtin__", "bytes"): lambda: b"",  # and none at all
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
}


def read_npz(path: Path | str, names: Sequence[str]) -> list[np.ndarray]:
    """Named arrays of a file, those of objects included."""
    try:
        with zipfile.ZipFile(path) as file:
            missing = sorted({f"{name}.npy" for name in names} - set(file.namelist()))
            if missing:
                raise FormatError(f"{path} has no array {missing[0].removesuffix('.npy')}")
            return [_read_array(file, f"{name}.npy") for name in names]
    except Exception as error:  # damaged data can fail in any way; it is never more than an unreadable file
        raise FormatError(f"cannot read {path}: {error or type(error).__name__}") from None


def read_pickle(path: Path | str) -> Any:
    """A pickle of lists, dictionaries, text, numbers and numpy arrays."""
    try:
        with open(path, "rb") as file:
            return pickles.read_pickle(file, _KNOWN, encoding="latin1")
    except Exception as error:
        raise FormatError(f"cannot read {path}: {error or type(error).__name__}") from None


def _read_array(file: zipfile.ZipFile, name: str) -> np.ndarray:
    with file.open(name) as member:
        version = np.lib.format.read_magic(member)
        if version not in ((1, 0), (2, 0)):
            raise FormatError(f"array {name} has the unknown format {version}")
        first = version == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(member)
        if dtype.hasobject:
            content = pickles.read_pickle(io.BytesIO(member.read()), _KNOWN)
            return np.asarray(content, object).reshape(shape)
        if math.prod(shape) * dtype.itemsize > file.getinfo(name).file_size:
            raise FormatError(f"array {name} of shape {shape} is larger than its data")
    with file.open(name) as member:
        return np.lib.format.read_array(member, allow_pickle=False)
