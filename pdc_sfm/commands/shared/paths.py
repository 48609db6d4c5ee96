"""Which arguments of a command are read and which are written: checked for every command before anything is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pdc_sfm.errors import OutputError
from pdc_sfm.paths import IMAGE_SUFFIXES, check_output_file, check_output_folder, keep_apart


@dataclass(frozen=True)
class Paths:
    """Names of arguments, by what happens to the paths that they are given. A parser has them as its default `paths`."""

    images: tuple[str, ...] = ()  # folders of images, below which no folder and no picture is written
    inputs: tuple[str, ...] = ()  # files, folders and globs that are only read
    models: tuple[str, ...] = ()  # folders of COLMAP models that are only read
    guarded: tuple[str, ...] = ()  # files that are only read, which the verb itself keeps apart from what it writes
    files: tuple[str, ...] = ()  # files that are written
    pictures: tuple[str, ...] = ()  # files that are written, in a format that their suffix says
    folders: tuple[str, ...] = ()  # folders that are filled,
    replaced: tuple[str, ...] = ()  # and what of their content is replaced
    also: Callable[[argparse.Namespace], list[Path]] = lambda args: []  # files that are written beside

    def check(self, args: argparse.Namespace) -> None:
        """Refuse outputs that cannot be written, and those that are inputs."""
        written = [*_values(args, self.files), *self.also(args)]
        for path in (*written, *_values(args, self.pictures)):
            check_output_file(path)
        for path in _values(args, self.pictures):
            _check_picture(path)
        folders = _values(args, self.folders)
        for path in folders:
            check_output_folder(path)
        keep_apart(
            images=_values(args, self.images),
            inputs=_values(args, (*self.inputs, "config")),
            models=_values(args, self.models),
            files=[*written, *_values(args, self.pictures)],
            folders=folders,
            replaced=[folder / name for folder in folders for name in self.replaced],
        )


def _values(args: argparse.Namespace, names: Iterable[str]) -> list[Path]:
    found = [getattr(args, name, None) for name in names]
    several = [value if isinstance(value, list) else [value] for value in found]
    return [Path(value) for values in several for value in values if value is not None]


def _check_picture(path: Path) -> None:
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise OutputError(f"cannot write a picture as {path}: end its name with one of {' '.join(IMAGE_SUFFIXES)}")
