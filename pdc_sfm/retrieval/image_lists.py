"""Lists of images: a file of names, several files by a glob, or a folder below the images."""

from __future__ import annotations

from pathlib import Path

from pdc_sfm.errors import FormatError
from pdc_sfm.images import list_images
from pdc_sfm.paths import read_text
from pdc_sfm.store.pair_lists import check_name


def read_names(source: Path | str, images: Path | str) -> list[str]:
    """The images a list names, in its order: the first word of each line, so that lists with intrinsics serve too.

    A folder below `images` (`query/night`, or `.` for all) stands for all images in it.
    """
    source, images = Path(source), Path(images)
    files = [source] if source.is_file() else sorted(source.parent.glob(source.name)) if source.name else []
    files = [file for file in files if file.is_file()]
    if files:
        names = [name for file in files for name in _read(file)]
    elif (images / source).is_dir():
        prefix = "" if source == Path(".") else f"{source.as_posix()}/"
        names = [prefix + name for name in list_images(images / source)]
    else:
        raise FormatError(f"{source} is neither a list of images nor a folder below {images}")
    if not names:
        raise FormatError(f"{source} names no image")
    return list(dict.fromkeys(names))


def _read(file: Path) -> list[str]:
    try:
        lines = read_text(file).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read the list {file}: {error}") from None
    rows = [(number, words[0]) for number, line in enumerate(lines, start=1) if (words := line.split())]
    rows = [(number, name) for number, name in rows if not name.startswith("#")]
    for number, name in rows:
        check_name(name, f"{file} line {number}: ")
    return [name for _, name in rows]
