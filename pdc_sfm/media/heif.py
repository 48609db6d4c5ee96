"""Converts HEIC and WebP photographs to JPEG for programs that cannot read them, such as COLMAP."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from pdc_sfm.errors import ImageError
from pdc_sfm.files import atomic_path
from pdc_sfm.images import is_heif, open_heif, read_image

ORIENTATION, EXIF_IFD, MAKER_NOTE = (
    0x0112,
    0x8769,
    0x927C,
)  # of EXIF; notes of the maker may be larger than a JPEG holds
QUALITY = 95  # of the JPEG, as OpenCV's


def refuse_unreadable_heif(images: Path, names: Iterable[str]) -> None:
    """One line for all photographs of a phone, not one for each of them, where pillow-heif is not installed."""
    if importlib.util.find_spec("pillow_heif") is not None:
        return
    found = [name for name in names if is_heif(images / name)]
    if found:
        raise ImageError(
            f"{images} holds {len(found)} HEIC photographs (first: {found[0]}): to read them, pip install 'pdc-sfm[heic]'; or "
            "convert them to JPEG"
        )


def convert_to_jpeg(path: Path, target: Path) -> None:
    """The picture, with what EXIF says of the camera, time and place: upright if it is HEIC, otherwise the pixels as stored."""
    from PIL import Image

    if is_heif(path):
        picture, said = open_heif(path.read_bytes(), path)
        exif = Image.Exif()
        if said:
            exif.load(said)
            exif[ORIENTATION] = 1  # pillow-heif leaves it as it was, and has turned the pixels
    else:
        picture = Image.fromarray(read_image(path))
        try:
            with Image.open(path) as opened:
                exif = opened.getexif()
        except (OSError, ValueError, SyntaxError):  # EXIF that makes no sense
            exif = Image.Exif()
    if exif:
        exif.get_ifd(EXIF_IFD).pop(MAKER_NOTE, None)
    with atomic_path(target) as partial:
        picture.save(partial, "JPEG", quality=QUALITY, subsampling=0, exif=exif)
