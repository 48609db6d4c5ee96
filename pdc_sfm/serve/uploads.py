"""Pictures of strangers: looked at by their header before anything is decoded."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from pdc_sfm.errors import ImageError
from pdc_sfm.images import Photograph, begins_as_heif, begins_unknown_to_colmap, decode_photograph
from pdc_sfm.media.heif import convert_to_jpeg
from pdc_sfm.pixels import MIN_SIDE, Size

FORMATS = ("JPEG", "PNG", "WEBP")
FOCAL_TAGS = {0x920A, 0xA405}  # FocalLength, FocalLengthIn35mmFilm
EXIF_IFD = 0x8769


class Refused(ImageError):
    """A picture that is not taken, with the HTTP status that says so."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def check_header(content: bytes, pixels: int, name: str = "the picture") -> None:
    """Refuse what is no picture, or one of more than so many pixels, without decoding it."""
    from PIL import Image

    try:
        if begins_as_heif(content[:12]):
            width, height = _heif_size(content)
        else:
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                width, height = image.size
    except Refused:
        raise
    except Exception as error:  # whatever hostile bytes make it raise
        if isinstance(error, Image.DecompressionBombError):
            raise Refused(f"{name} has more than the {pixels:,} pixels that are taken here", 413) from None
        raise Refused(f"{name} is not a JPEG, PNG or WebP picture ({len(content):,} bytes)", 415) from None
    if width * height > pixels:
        raise Refused(f"{name} is {width} x {height}: more than the {pixels:,} pixels that are taken here", 413)
    if min(width, height) < MIN_SIDE:
        raise Refused(f"{name} is {width} x {height}: at least {MIN_SIDE} x {MIN_SIDE} pixels are needed", 422)


def _heif_size(content: bytes) -> Size:
    try:
        import pillow_heif
    except ImportError:
        raise Refused("HEIC pictures are not read here (pip install 'pdc-sfm[heic]'): send a JPEG", 415) from None
    return pillow_heif.open_heif(io.BytesIO(content), convert_hdr_to_8bit=True).size


def decode_upload(content: bytes, pixels: int, name: str = "the picture") -> Photograph:
    """The pixels of a picture whose header was found to be in order."""
    check_header(content, pixels, name)
    try:
        photograph = decode_photograph(content, name)
    except ImageError:
        raise Refused(f"{name} cannot be decoded: it is damaged or cut off", 422) from None
    if photograph.pixels.shape[0] * photograph.pixels.shape[1] > pixels:  # header and content differ
        raise Refused(f"{name} has more than the {pixels:,} pixels that are taken here", 413)
    return photograph


def as_jpeg(content: bytes) -> bytes:
    """A HEIC or WebP photograph as the JPEG that `localize` makes of one, with its EXIF; others as they are."""
    if not begins_unknown_to_colmap(content[:12]):
        return content
    with tempfile.TemporaryDirectory(prefix="pdc-sfm-") as folder:
        source, target = Path(folder) / "a", Path(folder) / "a.jpg"
        source.write_bytes(content)
        try:
            convert_to_jpeg(source, target)
        except Exception:  # whatever hostile bytes make it raise
            raise Refused("the picture cannot be decoded: it is damaged or cut off", 422) from None
        return target.read_bytes()


def suffix_of(content: bytes) -> str:
    """Of a file with these bytes, which `as_jpeg` returned."""
    return ".png" if content[:4] == b"\x89PNG" else ".jpg"


def tells_focal_length(content: bytes) -> bool:
    """Whether EXIF names a focal length; whatever a damaged one says, it does not."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            return bool(FOCAL_TAGS & set(image.getexif().get_ifd(EXIF_IFD)))
    except Exception:  # whatever hostile bytes make it raise
        return False
