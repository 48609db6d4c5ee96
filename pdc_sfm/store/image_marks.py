"""Which images a store was made of. Names alone do not tell: cameras count from IMG_0001 again, videos from frame 0.

Beside the store stands for each image a mark of its content, and its size and time, by which most need not be read again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.files import write_text
from pdc_sfm.paths import check_regular

FILE = "images.json"  # name -> [bytes, time of change, mark]
END = 1 << 16  # bytes read at the beginning and at the end of a file: header, EXIF, and some of the picture


def image_mark(path: Path) -> str | None:
    """What tells an image from others of its name, wherever it lies; None if it cannot be read."""
    try:
        check_regular(path)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.sha256(size.to_bytes(8, "little") + file.read(END))
            file.seek(max(END, size - END))
            digest.update(file.read(END))
    except (OSError, ValueError):
        return None
    return digest.hexdigest()[:16]


def check_same_images(folder: Path, images: Path, names: Iterable[str], used: Collection[str]) -> None:
    """Refuse to go on with the store in `folder` if images that it has `used` are others now; note the others of `names`.

    Hold the lock of the store, and call this before anything of new images is written.
    """
    known = _read(folder / FILE)
    now = {name: _look(images / name, known.get(name)) for name in dict.fromkeys(names)}
    changed = [
        name for name, found in now.items() if found and name in known and name in used and found[2] != known[name][2]
    ]
    if changed:
        raise OtherSettingsError(
            f"{folder} was made of other images of the same names as {len(changed)} of these (first: "
            f"{images / changed[0]}): choose another output, or overwrite",
            folder,
        )
    new = {name: found for name, found in now.items() if found and found != known.get(name)}
    if new:
        write_text(folder / FILE, json.dumps({**known, **new}) + "\n")


def _look(path: Path, known: list | None) -> list | None:
    """[bytes, time of change, mark] of an image; None if it cannot be read."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if known is not None and known[:2] == [found.st_size, found.st_mtime_ns]:
        return known
    mark = image_mark(path)
    return None if mark is None else [found.st_size, found.st_mtime_ns, mark]


def _read(path: Path) -> dict[str, list]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
