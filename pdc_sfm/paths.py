"""Checks of paths given by a user: inputs are regular files, and outputs are not inputs."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from pdc_sfm.errors import OutputError

LARGEST_TEXT = 1 << 30  # characters; a list of ten million pairs has fewer
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
HEIF_SUFFIXES = (".heic", ".heif", ".hif")  # that are read only
IMAGE_BEGINNINGS = (
    b"\xff\xd8\xff",
    b"\x89PNG",
    b"II*\0",
    b"MM\0*",
    b"RIFF",
    b"P5\n",
    b"P6\n",
)  # that no text begins with
MODEL = tuple(f"{name}.{end}" for name in ("cameras", "images", "points3D", "frames", "rigs") for end in ("bin", "txt"))
MADE_MODEL = (
    *MODEL,
    "database.db",
    "points.ply",
    "frame.json",
    "summary.json",
    "rig.json",
    "models",
)  # by reconstruct and triangulate
BLOCK = 1 << 20  # characters read at a time


def check_regular(path: Path | str) -> None:
    """An OSError for what would block its reader or never end (a pipe, a socket, a device), as for what is not there."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))


def read_text(path: Path | str, most: int = LARGEST_TEXT) -> str:
    """The text of a file that the user names, or that a shell gives as a pipe; an OSError for a device and what is too large."""
    with open(path, encoding="utf-8-sig") as file:
        if not stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            check_regular(path)
        parts, count = [], 0
        while part := file.read(BLOCK):  # asked for all at once, it takes the memory of the largest text first
            count += len(part)
            if count > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} characters", str(path))
            parts.append(part)
    return "".join(parts)


def check_output_file(path: Path) -> None:
    """Refuse, before hours of work, what cannot become a file."""
    if path.is_dir():
        raise OutputError(f"{path} is a folder: give the name of a file to write")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a pipe or a device: give the name of a file to write")
    _check_writable(path.parent)


def check_output_folder(path: Path) -> None:
    """Refuse, before hours of work, what cannot become a folder to write to."""
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is a file: give a folder to write to")
    _check_writable(path)


def _check_writable(folder: Path) -> None:
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise OutputError(f"{there} is a file, not a folder: nothing can be written below it")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"{there} may not be written: choose another output, or change its permissions")


def keep_apart(
    *,
    images: Iterable[Path | str] = (),
    inputs: Iterable[Path | str] = (),
    models: Iterable[Path | str] = (),
    files: Iterable[Path | str] = (),
    folders: Iterable[Path | str] = (),
    replaced: Iterable[Path | str] = (),
) -> None:
    """Refuse outputs that are inputs, under whatever name: a link, another spelling, a second name of the same file.

    `images` are folders of images: below them no folder is written, whose content would be mixed with the photographs,
    and no picture; another file does no harm there. `inputs` are files, folders and globs, and `models` folders of COLMAP
    models, that are only read; `files` and `folders` are written; of these, `replaced` are removed with all they hold, so
    that no input may lie in them.
    """
    image_folders, removed = [Path(path) for path in images], [Path(path) for path in replaced]
    read = [*image_folders, *(found for path in inputs for found in _existing(Path(path)))]
    read += [found for path in map(Path, models) for found in (path, *(path / name for name in MODEL))]
    written = [Path(path) for path in files]
    for output in (*written, *map(Path, folders), *removed):
        for path in read:
            if _same(output, path):
                raise OutputError(f"{output} is an input of this command: choose another output")
        for folder in image_folders:
            _keep_from_images(output, folder, output in written)
    for output in removed:
        for path in read:
            if any(_same(place, output) for place in path.resolve().parents):
                raise OutputError(f"{output} is replaced by this command, and {path} lies in it: choose another output")


def _existing(path: Path) -> list[Path]:
    """The files that an argument means, which may be a glob."""
    return [path] if path.exists() or not path.name else list(path.parent.glob(path.name))


def _keep_from_images(output: Path, folder: Path, is_file: bool) -> None:
    inside = any(_same(place, folder) for place in output.resolve().parents)
    if inside and not is_file:
        raise OutputError(
            f"{output} lies in {folder}, which holds images, and what is written there could be taken for more of them: "
            "choose a folder outside of it"
        )
    if inside and output.suffix.lower() in (*IMAGE_SUFFIXES, *HEIF_SUFFIXES):
        raise OutputError(
            f"{output} lies in {folder}, which holds images, and would be taken for one: choose an output outside of it"
        )
    if output.is_file() and (image := _same_below(output, folder)):
        raise OutputError(f"{output} is the image {image}: choose another output")


def _same(first: Path, second: Path) -> bool:
    """Whether two paths are one place."""
    if first.resolve() == second.resolve():
        return True
    try:
        return os.path.samefile(first, second)
    except OSError:  # one of them is not there
        return False


def _same_below(path: Path, folder: Path) -> Path | None:
    """The image of a folder, or of one below it, that a path leads to as well. A list may name it by any suffix."""
    wanted, here = path.stat(), path.absolute()
    for place, _, names in os.walk(folder):
        for name in names:
            found = Path(place, name)
            try:
                if not os.path.samestat(wanted, found.stat()):
                    continue
            except OSError:  # a link that leads nowhere
                continue
            is_image = found.suffix.lower() in (*IMAGE_SUFFIXES, *HEIF_SUFFIXES) or _begins_as_image(found)
            if found.absolute() != here or is_image:
                return found
    return None


def _begins_as_image(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(4).startswith(IMAGE_BEGINNINGS)
