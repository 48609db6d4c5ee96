"""Reads and writes images: pixels as they are stored, as in COLMAP and hloc, whatever the EXIF orientation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pdc_sfm.errors import ImageError
from pdc_sfm.files import atomic_path
from pdc_sfm.orientation import UPRIGHT, Orientation, orientation_of
from pdc_sfm.paths import HEIF_SUFFIXES, IMAGE_SUFFIXES, check_regular
from pdc_sfm.pixels import Size

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST = (1 << 31) - 1  # bytes of a file, as OpenCV counts them


HEIF_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"}


class Photograph(NamedTuple):
    """The pixels of a file, and the orientation in which the network sees them."""

    pixels: np.ndarray  # (H, W, 3) uint8, as stored
    orientation: Orientation = UPRIGHT


def read_image(path: Path | str) -> np.ndarray:
    """Read a file as RGB, (H, W, 3) uint8: gray is repeated, transparency dropped, 16 bits reduced to 8."""
    return read_photograph(path).pixels


def read_photograph(path: Path | str) -> Photograph:
    """As `read_image`, and the orientation that its EXIF states."""
    return decode_photograph(_read_bytes(Path(path)), path)


def decode_photograph(content: bytes | np.ndarray, name: Path | str) -> Photograph:
    """The same from the bytes of a file; `name` is used in errors."""
    data = np.frombuffer(content, np.uint8)
    return Photograph(_decoded(data, Path(name)), orientation_of(data.data))


def _read_bytes(path: Path) -> np.ndarray:
    try:
        check_regular(path)
        if os.path.getsize(path) > LARGEST:
            raise ImageError(f"{path} has {os.path.getsize(path):,} bytes: more than any image that can be read")
        return np.fromfile(path, np.uint8)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise ImageError(f"cannot read image {path}: {getattr(error, 'strerror', None) or error}") from None


def _decoded(data: np.ndarray, path: Path) -> np.ndarray:
    import cv2

    if begins_as_heif(data[:12].tobytes()):
        return np.ascontiguousarray(open_heif(data.tobytes(), path)[0])
    flags = cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    try:
        image = cv2.imdecode(data, flags) if data.size else None
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:  # the image may be a good one
            raise MemoryError(f"not enough memory to read {path}") from None
        image = None
    if image is None:
        raise ImageError(f"{path} is not a readable image ({data.size} bytes): replace or remove it")
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    elif image.dtype != np.uint8:
        raise ImageError(f"{path} has {image.dtype} pixels: convert it to 8 or 16 bits")
    if image.ndim == 2:
        return np.repeat(image[..., None], 3, axis=2)
    if image.shape[2] not in (3, 4):
        raise ImageError(f"{path} has {image.shape[2]} channels: convert it to gray or RGB")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB if image.shape[2] == 3 else cv2.COLOR_BGRA2RGB)


def is_heif(path: Path) -> bool:
    """Whether a file is a HEIC photograph, by its content, as phones rename files; false for what cannot be read."""
    return begins_as_heif(_beginning(path))


def needs_jpeg(path: Path) -> bool:
    """Whether COLMAP cannot read a photograph that is read here, HEIC or WebP, by its content."""
    return begins_unknown_to_colmap(_beginning(path))


def _beginning(path: Path) -> bytes:
    """The first 12 bytes of a file; none of what cannot be read."""
    try:
        check_regular(path)
        with open(path, "rb") as file:
            return file.read(12)
    except OSError:
        return b""


def open_heif(content: bytes, path: Path) -> tuple[Image, bytes | None]:
    """The picture of a HEIC file and its EXIF, by pillow-heif.

    HEIF has its own property for rotation, which the decoder has applied; the EXIF orientation must be ignored.
    """
    try:
        import pillow_heif
    except ImportError:
        raise ImageError(
            f"{path} is a HEIC photograph: to read it, pip install 'pdc-sfm[heic]'; or convert it to JPEG"
        ) from None
    try:
        found = pillow_heif.read_heif(content)
        return found.to_pillow().convert("RGB"), found.info.get("exif")
    except (ValueError, OSError, RuntimeError, EOFError, SyntaxError) as error:
        said = " ".join(str(error).split())
        raise ImageError(f"{path} is not a readable image ({said}): replace or remove it") from None


def begins_as_heif(beginning: bytes) -> bool:
    """Whether a file of these first 12 bytes is a HEIC photograph."""
    return beginning[4:8] == b"ftyp" and beginning[8:12] in HEIF_BRANDS


def begins_unknown_to_colmap(beginning: bytes) -> bool:
    """Whether a file of these first 12 bytes is HEIC or WebP."""
    return begins_as_heif(beginning) or (beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP")


def write_image(path: Path | str, image: np.ndarray) -> None:
    """Write an RGB (H, W, 3) or gray (H, W) uint8 array; the suffix chooses the format."""
    import cv2

    path = Path(path)
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise ImageError(f"cannot write a picture as {path}: end its name with one of {' '.join(IMAGE_SUFFIXES)}")
    ok, data = cv2.imencode(path.suffix, image[..., ::-1] if image.ndim == 3 else image)
    if not ok:
        raise ImageError(f"cannot encode an image as {path.suffix}")
    with atomic_path(path) as partial:
        partial.write_bytes(data.tobytes())


def list_images(folder: Path | str) -> list[str]:
    """Names of all images below a folder, relative to it, sorted, with forward slashes.

    Unreadable files with the name of an image, such as a pipe or a broken link, are listed; reading them is refused.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ImageError(f"{folder} is not a folder")
    suffixes = {*IMAGE_SUFFIXES, *HEIF_SUFFIXES}
    found = (path for path in folder.rglob("*") if path.suffix.lower() in suffixes and not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def name_problem(name: str) -> str | None:
    """Why a name in a list cannot be an image below the image folder; None if it can. Nothing is read or written by it."""
    if not name or name.startswith("/") or {"", ".", ".."} & set(name.split("/")):
        return "is not a path below the image folder, as db/1.jpg"
    if "\0" in name or not _is_text(name):
        return "is not a name of text in UTF-8: rename the file"
    return None


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:  # a file name of other bytes
        return False
    return True


def fitted_size(size: Size, min_side: int | None = None, max_side: int | None = None) -> Size:
    """The size at which the smaller side is `min_side` and the longer one at most `max_side`, aspect kept.

    None sets no limit: both None keep the size, `max_side` alone only ever shrinks.
    """
    width, height = size
    factor = 1.0 if min_side is None else min_side / min(size)
    if max_side is not None:
        factor = min(factor, max_side / max(size))
    return max(1, round(width * factor)), max(1, round(height * factor))


def resize_image(image: np.ndarray, size: Size) -> np.ndarray:
    """Resize to (width, height), corners on corners: pixel areas are averaged when shrinking, bilinear when growing."""
    import cv2

    height, width = image.shape[:2]
    if (width, height) == tuple(size):
        return image
    shrinking = size[0] <= width and size[1] <= height
    return cv2.resize(image, tuple(size), interpolation=cv2.INTER_AREA if shrinking else cv2.INTER_LINEAR)
