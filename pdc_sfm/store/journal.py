"""Raw matches on disk: a folder of append-only segments that a kill at any moment cannot damage.

A record is a header (magic, lengths, checksum), the names of the pair and its matches, packed (`store.packing`). It is complete
when its checksum fits; what an interrupted write left at the end of the last segment is cut off when the folder is opened again.
A damaged record is left out, and its pair is matched again.
The settings that made the matches stand beside them, and a store is never continued with other settings.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from pdc_sfm.errors import FormatError, OtherSettingsError, StorageError
from pdc_sfm.files import exclusive, remove_folder, write_text
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size
from pdc_sfm.settings import differences
from pdc_sfm.store import packing
from pdc_sfm.store.h5_target import write_all

HEADER = struct.Struct("<4s7I")  # magic, bytes of the names, number of matches, sizes of both images, crc32
PACKED_HEADER = struct.Struct("<4s8I")  # the same with the bytes of the packed matches before the checksum
PACKED, FLOATS = (
    b"PDM3",
    b"PDM2",
)  # FLOATS: three float32 arrays, for what packing would change, and in earlier versions
COUNTS = b"PDN2"  # no matches, only their number
BODY_ONLY = (b"PDM1", b"PDN1")  # records of earlier versions, whose checksum leaves out the header
FLOAT_BYTES = 20  # of a match that is not packed: two points and a score
SEGMENT_BYTES = 256 << 20  # only the last segment is read through on opening
FLUSH_SECONDS = 5.0  # a kill loses nothing that was written; a power cut loses at most this

Store = TypeVar("Store", bound="RawStore")


class _Place(NamedTuple):
    segment: Path
    offset: int  # of the names
    names_bytes: int
    body_bytes: int  # names and matches
    matches: int
    packed: bool
    sizes: tuple[Size, Size]
    seed: int  # of the checksum: that of the header
    checksum: int


@dataclass(frozen=True)
class MatchCount:
    """Stands for matches of which only the number is kept."""

    matches: int

    def __len__(self) -> int:
        return self.matches


class RawStore:
    """Raw matches by pair. One process writes (`open_raw_store` holds the lock), any number may read."""

    magics: tuple[bytes, ...] = (PACKED, FLOATS, b"PDM1")
    match_bytes = FLOAT_BYTES  # where they are not packed

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self._places: dict[tuple[str, str], _Place] = {}
        self._file: BinaryIO | None = None
        self._flushed = time.monotonic()
        self._last_good = 0  # bytes of the last segment that are whole records
        segments = self._segments()
        for segment in segments:
            self._last_good = self._index(segment, verify=segment is segments[-1])

    def __contains__(self, pair: tuple[str, str]) -> bool:
        """Whether a pair is finished, in this or the other order."""
        return pair in self._places or pair[::-1] in self._places

    def __len__(self) -> int:
        return len(self._places)

    def pairs(self) -> list[tuple[str, str]]:
        """The finished pairs, as (name0, name1) of their matching."""
        return list(self._places)

    def count(self, pair: tuple[str, str]) -> int:
        """How many matches a pair has, without reading them."""
        return self._place(pair)[0].matches

    def sizes(self, pair: tuple[str, str]) -> tuple[Size, Size]:
        """(width, height) of both images."""
        place, reverse = self._place(pair)
        return place.sizes[::-1] if reverse else place.sizes

    def read(self, pair: tuple[str, str]) -> RawMatches:
        """The matches of a finished pair, in the order asked for."""
        place, reverse = self._place(pair)
        with open(place.segment, "rb") as file:
            file.seek(place.offset)
            body = file.read(place.body_bytes)
        try:
            if len(body) != place.body_bytes or zlib.crc32(body, place.seed) != place.checksum:
                raise ValueError("checksum")
            read = packing.unpack if place.packed else _from_floats
            matches = read(body[place.names_bytes :], place.matches)
        except ValueError:
            raise FormatError(
                f"{place.segment} is damaged at the pair {' '.join(pair)}: delete that file and run again, "
                "only its pairs are matched again"
            ) from None
        return matches.swapped() if reverse else matches

    def part(self, pairs: Iterable[tuple[str, str]]) -> RawStore:
        """Some finished pairs, to read in another process: small to send there, and nothing is read to make it."""
        part = object.__new__(type(self))
        part.folder, part._file = self.folder, None
        part._places = {pair if pair in self._places else pair[::-1]: self._place(pair)[0] for pair in pairs}
        return part

    def append(self, pair: tuple[str, str], matches: RawMatches | MatchCount, sizes: tuple[Size, Size]) -> None:
        """Add the matches of a pair and its images' sizes; on return they survive the end of this process."""
        names = "\0".join(pair).encode()
        names = names.ljust(-(-len(names) // 4) * 4, b"\0")
        magic, content = self._pack(matches)
        body, known = names + content, (magic, len(names), len(matches), *sizes[0], *sizes[1])
        packed = magic == PACKED
        header = PACKED_HEADER.pack(*known, len(content), 0) if packed else HEADER.pack(*known, 0)
        seed = _seed(header)
        checksum = zlib.crc32(body, seed)
        header = header[:-4] + checksum.to_bytes(4, "little")
        file = self._writable()
        start = file.tell()
        try:
            write_all(file, header + body)
        except OSError as error:
            with contextlib.suppress(OSError):
                file.truncate(start)
            raise StorageError(
                f"cannot write {file.name}: {error.strerror or error}. The {len(self)} finished pairs are kept: "
                "make room and run the same command again"
            ) from None
        segment, offset = Path(file.name), start + len(header)
        self._places[pair] = _Place(segment, offset, len(names), len(body), len(matches), packed, sizes, seed, checksum)
        self._last_good = offset + len(body)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def _pack(self, matches: Any) -> tuple[bytes, bytes]:
        """The magic of a record and its content after the names."""
        if packing.fits(matches):
            return PACKED, packing.pack(matches)
        arrays = (matches.keypoints0, matches.keypoints1, matches.scores)
        return FLOATS, b"".join(a.astype("<f4").tobytes() for a in arrays)

    def flush(self) -> None:
        """Wait until everything written is on the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())
        self._flushed = time.monotonic()

    def close(self) -> None:
        if self._file is not None:
            self.flush()
            self._file.close()
            self._file = None

    def _place(self, pair: tuple[str, str]) -> tuple[_Place, bool]:
        """Where a pair stands, and whether it stands there in the other order."""
        return (self._places[pair], False) if pair in self._places else (self._places[pair[::-1]], True)

    def _segments(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.matches")) if self.folder.is_dir() else []

    def _index(self, segment: Path, verify: bool) -> int:
        """Find the records of a segment, without damaged ones. Returns where the last whole one ends."""
        size, stop, end = segment.stat().st_size, 0, 0
        with open(segment, "rb") as file:
            while (header := _read_header(file)) is not None:
                magic, names_bytes, count, w0, h0, w1, h1, *rest, checksum = _layout(header).unpack(header)
                start = stop + len(header)
                stop = start + names_bytes + (rest[0] if rest else self.match_bytes * count)
                if magic not in self.magics or stop > size:
                    break
                body = file.read(stop - start if verify or not self.match_bytes else names_bytes)
                file.seek(stop)
                seed, names = _seed(header), body[:names_bytes].rstrip(b"\0").decode(errors="replace").split("\0")
                if len(names) != 2 or (len(body) == stop - start and zlib.crc32(body, seed) != checksum):
                    continue
                sizes = (w0, h0), (w1, h1)
                self._places[names[0], names[1]] = _Place(
                    segment, start, names_bytes, stop - start, count, magic == PACKED, sizes, seed, checksum
                )
                end = stop
        return end

    def _writable(self) -> BinaryIO:
        """The segment to append to: the last one, cut after its last whole record, or a new one."""
        if self._file is not None and self._file.tell() < SEGMENT_BYTES:
            return self._file
        self.close()
        segments = self._segments()
        if segments and self._last_good < SEGMENT_BYTES:
            self._file = open(segments[-1], "r+b", buffering=0)
            self._file.truncate(self._last_good)
            self._file.seek(self._last_good)
        else:
            number = int(segments[-1].stem) + 1 if segments else 0
            self._file = open(self.folder / f"{number:05d}.matches", "xb", buffering=0)
            self._last_good = 0
        return self._file


class CountStore(RawStore):
    """How many matches each pair has, without the matches: for retrieval, which looks at far more pairs than it keeps."""

    magics = (COUNTS, b"PDN1")
    match_bytes = 0

    def __contains__(self, pair: tuple[str, str]) -> bool:
        """Whether a pair is counted in this order: the first is the reference, and the other order counts otherwise."""
        return pair in self._places

    def _pack(self, matches: Any) -> tuple[bytes, bytes]:
        return COUNTS, b""

    def read(self, pair: tuple[str, str]) -> RawMatches:
        raise TypeError("a CountStore keeps no matches")


def open_raw_store(
    folder: Path | str, settings: Mapping[str, Any], *, overwrite: bool = False, wait: bool = False
) -> contextlib.AbstractContextManager[RawStore]:
    """Open a store of matches for writing, alone. `settings` must be those it was made with; `overwrite` starts it anew."""
    return open_store(RawStore, folder, settings, overwrite=overwrite, wait=wait)


@contextlib.contextmanager
def open_store(
    kind: type[Store], folder: Path | str, settings: Mapping[str, Any], *, overwrite: bool = False, wait: bool = False
) -> Iterator[Store]:
    """The same of either kind of store."""
    folder = Path(folder)
    with exclusive(folder, wait):
        if overwrite and folder.exists():
            remove_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        _keep_settings(folder, settings)
        store = kind(folder)
        try:
            yield store
        finally:
            store.close()


def raw_settings(folder: Path | str) -> dict[str, Any]:
    """The settings the matches of a store were made with."""
    path = Path(folder) / "settings.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {path}: {error}") from None


def _keep_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    path = folder / "settings.json"
    if not path.exists():
        return write_text(path, json.dumps(settings, indent=2, sort_keys=True) + "\n")
    changes = differences(raw_settings(folder), json.loads(json.dumps(settings)))
    if changes:
        before = {key: value.partition(" -> ")[0] for key, _, value in (change.partition(": ") for change in changes)}
        method = before.get("dense.method")  # its default changes from version to version
        way = "" if method in (None, "None") else f"give dense.method={method} to go on with them, "
        raise OtherSettingsError(
            f"the matches in {folder} were made with other settings ({'; '.join(changes)}): "
            f"{way}choose another output, or overwrite",
            folder,
        )


def _layout(header: bytes) -> struct.Struct:
    return PACKED_HEADER if header[:4] == PACKED else HEADER


def _read_header(file: BinaryIO) -> bytes | None:
    """The header of the next record; None where the file ends before."""
    header = file.read(HEADER.size)
    header += file.read(_layout(header).size - HEADER.size)
    return header if len(header) == _layout(header).size else None


def _from_floats(content: bytes, count: int) -> RawMatches:
    """Three float32 arrays."""
    points0, points1, scores = np.split(np.frombuffer(content, "<f4"), [2 * count, 4 * count])
    return RawMatches(points0.reshape(-1, 2), points1.reshape(-1, 2), scores)


def _seed(header: bytes) -> int:
    """The checksum of a header, on which that of the record goes on."""
    return 0 if header[:4] in BODY_ONLY else zlib.crc32(header[:-4])
