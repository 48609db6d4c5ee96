"""Reads pickles without executing anything in them.

A pickle can call any function it names. Here a name resolves to what its reader knows by that name, and to nothing else.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from pdc_sfm.errors import FormatError

Names = Mapping[tuple[str, str], Any]  # (module, name) -> what stands for it


def read_pickle(
    file: BinaryIO,
    known: Names,
    unknown: Any = None,
    persistent: Callable[[Any], Any] | None = None,
    encoding: str = "ASCII",
    errors: str = "strict",
) -> Any:
    """The object of a pickle. Another name than those known is `unknown`, or refused where that is None.

    `persistent` gives what the pickle only refers to; None: it may refer to nothing.
    """
    check_opcodes(file)
    return _Unpickler(file, known, unknown, persistent, encoding, errors).load()


def check_opcodes(file: BinaryIO) -> None:
    """Walk through a pickle without building anything; the file is then where it was.

    The unpickler takes lengths and places in its memory on trust: a single damaged byte can make it ask for 30 GB.
    """
    start = file.tell()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= number:
            raise FormatError(f"a pickle that remembers {argument} things: the file is damaged")
    file.seek(start)


class _Unpickler(pickle.Unpickler):
    def __init__(
        self,
        file: BinaryIO,
        known: Names,
        unknown: Any,
        persistent: Callable[[Any], Any] | None,
        encoding: str,
        errors: str,
    ):
        super().__init__(file, encoding=encoding, errors=errors)
        self._known, self._unknown, self._persistent = known, unknown, persistent

    def find_class(self, module: str, name: str) -> Any:
        found = self._known.get((module, name), self._unknown)
        if found is None:
            raise FormatError(f"it names {module}.{name}, which does not belong into data")
        return found

    def persistent_load(self, pid: Any) -> Any:
        if self._persistent is None:
            raise FormatError(f"it refers to {pid!r}, which is not in it")
        return self._persistent(pid)
