"""EXIF orientation: how the pixels of a file are rotated or mirrored to show the picture upright.

COLMAP and hloc use pixels as they are stored, and so do all files and results here. Only the network sees the
upright picture, as it was trained on upright houses. Its results are transformed back to stored pixels exactly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pdc_sfm.pixels import Size

TAG, SHORT = 0x0112, 3  # EXIF's orientation, a 16-bit number
PREFIX = b"Exif\0\0"


@dataclass(frozen=True)
class Orientation:
    """Stored pixels become upright ones by exchanging x and y, then by mirroring either."""

    exchanged: bool = False
    mirrored_x: bool = False
    mirrored_y: bool = False

    @property
    def is_mirror(self) -> bool:
        """Whether the stored pixels show the world as in a mirror: no turn makes them upright."""
        return (self.exchanged + self.mirrored_x + self.mirrored_y) % 2 == 1

    def upright(self, stored: np.ndarray) -> np.ndarray:
        """Maps (h, w, ...) as they are seen upright: the same memory, read in another order."""
        turned = stored.swapaxes(0, 1) if self.exchanged else stored
        return turned[:: -1 if self.mirrored_y else 1, :: -1 if self.mirrored_x else 1]

    def stored(self, upright: np.ndarray) -> np.ndarray:
        """Maps (h, w, ...) of the upright picture as the pixels are stored."""
        turned = upright[:: -1 if self.mirrored_y else 1, :: -1 if self.mirrored_x else 1]
        return turned.swapaxes(0, 1) if self.exchanged else turned

    def stored_size(self, upright: Size) -> Size:
        """(width, height); and the other way round."""
        return (upright[1], upright[0]) if self.exchanged else (upright[0], upright[1])

    def stored_points(self, points: np.ndarray, upright_size: Size) -> np.ndarray:
        """Pixel indices (..., 2) of the upright picture, of that (width, height), as pixels are stored."""
        x, y = points[..., 0], points[..., 1]
        x = upright_size[0] - 1 - x if self.mirrored_x else x
        y = upright_size[1] - 1 - y if self.mirrored_y else y
        return np.stack((y, x) if self.exchanged else (x, y), -1)


UPRIGHT = Orientation()
BY_NUMBER = {  # EXIF 2.32, tag 0x0112: which sides of the picture are the first row and the first column of pixels
    1: UPRIGHT,
    2: Orientation(mirrored_x=True),
    3: Orientation(mirrored_x=True, mirrored_y=True),
    4: Orientation(mirrored_y=True),
    5: Orientation(exchanged=True),
    6: Orientation(exchanged=True, mirrored_x=True),
    7: Orientation(exchanged=True, mirrored_x=True, mirrored_y=True),
    8: Orientation(exchanged=True, mirrored_y=True),
}


def orientation_of(content: bytes | memoryview) -> Orientation:
    """Of the bytes of an image file (JPEG, PNG, WebP); upright where it says nothing, or nothing that makes sense.

    A TIFF file's is not read: OpenCV, which decodes it here and in hloc, has turned its pixels itself.
    """
    try:
        for block in _exif_blocks(memoryview(content)):
            return BY_NUMBER.get(_orientation_number(block), UPRIGHT)
    except (struct.error, IndexError):  # cut off, or no EXIF at all
        pass
    return UPRIGHT


def _exif_blocks(content: memoryview) -> Iterator[memoryview]:
    """What the file holds as EXIF: a TIFF header and its directories."""
    if content[:2] == b"\xff\xd8":
        blocks = _jpeg_segments(content)
    elif content[:8] == b"\x89PNG\r\n\x1a\n":
        blocks = _chunks(content, 8, ">I4s", b"eXIf", after=4)
    elif content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        blocks = _chunks(content, 12, "<4sI", b"EXIF", even=True)
    else:
        return
    for block in blocks:
        yield block[len(PREFIX) :] if block[: len(PREFIX)] == PREFIX else block


def _jpeg_segments(content: memoryview) -> Iterator[memoryview]:
    place = 2
    while content[place] == 0xFF and content[place + 1] != 0xDA:  # where the picture itself begins
        (length,) = struct.unpack_from(">H", content, place + 2)
        segment = content[place + 4 : place + 2 + length]
        if content[place + 1] == 0xE1 and segment[: len(PREFIX)] == PREFIX:
            yield segment
        place += 2 + max(2, length)


def _chunks(
    content: memoryview, place: int, header: str, name: bytes, after: int = 0, even: bool = False
) -> Iterator[memoryview]:
    """The chunks of one name: each is a header, as many bytes as it says, and perhaps a checksum `after` them."""
    while place + 8 <= len(content):
        fields = struct.unpack_from(header, content, place)
        length, word = sorted(fields, key=lambda value: isinstance(value, bytes))
        if word == name:
            yield content[place + 8 : place + 8 + length]
        place += 8 + length + after + (length % 2 if even else 0)


def _orientation_number(block: memoryview) -> int:
    order = ">" if block[:2] == b"MM" else "<"
    (directory,) = struct.unpack_from(order + "I", block, 4)
    (entries,) = struct.unpack_from(order + "H", block, directory)
    for entry in range(entries):
        tag, kind, _, value = struct.unpack_from(order + "HHIH", block, directory + 2 + 12 * entry)
        if (tag, kind) == (TAG, SHORT):
            return value
    return 1
