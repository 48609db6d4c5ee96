"""Paths that a user gives: what is read is a file that ends, what is written is no input."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from pdc_sfm.errors import OutputError

LARGEST_TEXT = 1 << 30  # characters; a list of ten million pairs has fewer
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
    images: Iterable[Path] = (),
    inputs: Iterable[Path] = (),
    outputs: Iterable[Path] = (),
    replaced: Iterable[Path] = (),
) -> None:
    """Refuse outputs that are inputs, under whatever name: a link, another spelling, a second name of the same file.

    `images` are folders of images: nothing is written below them, where it would be mixed with the photographs.
    `inputs` are files and folders that are only read, `outputs` files and folders to be written; of these, `replaced`
    are removed with all they hold, so that no input may lie in them.
    """
    images, replaced = list(images), list(replaced)
    inputs = [*images, *inputs]
    for output in (*outputs, *replaced):
        for path in inputs:
            if _same(output, path):
                raise OutputError(f"{output} is an input of this command: choose another output")
        for folder in images:
            if any(_same(place, folder) for place in output.resolve().parents):
                raise OutputError(f"{output} lies in {folder}, which holds images: choose an output outside of it")
            if output.is_file() and (image := _same_below(output, folder)):
                raise OutputError(f"{output} is the image {image}: choose another output")
    for output in replaced:
        for path in inputs:
            if any(_same(place, output) for place in path.resolve().parents):
                raise OutputError(f"{output} is replaced by this command, and {path} lies in it: choose another output")


def _same(first: Path, second: Path) -> bool:
    """Whether two paths are one place."""
    if first.resolve() == second.resolve():
        return True
    try:
        return os.path.samefile(first, second)
    except OSError:  # one of them is not there
        return False


def _same_below(path: Path, folder: Path) -> Path | None:
    """The file of a folder, or of one below it, that a path leads to as well."""
    wanted = path.stat()
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                if os.path.samestat(wanted, os.stat(os.path.join(place, name))):
                    return Path(place, name)
            except OSError:  # a link that leads nowhere
                continue
    return None
