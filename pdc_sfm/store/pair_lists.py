"""Pair lists: `name0 name1` a line, query first. Retrieval lists are the same, best first. And pairs' names in h5."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from pdc_sfm.errors import FormatError
from pdc_sfm.files import write_text
from pdc_sfm.images import name_problem
from pdc_sfm.paths import read_text

Pair = tuple[str, str]  # names of two images
BOM = "\ufeff"  # at the beginning of a file it is not part of its text


def read_pairs(path: Path | str) -> list[Pair]:
    """All pairs of a list, in its order, repetitions included."""
    pairs = []
    for number, words in _rows(Path(path)):
        if len(words) != 2:
            hint = ": names with spaces cannot stand in hloc's lists, rename them" if len(words) > 2 else ""
            text = textwrap.shorten(" ".join(words), 80, placeholder="...")
            raise FormatError(f"{path} line {number}: a pair is two names, not '{text}'{hint}")
        for name in words:
            check_name(name, f"{path} line {number}: ")
        pairs.append((words[0], words[1]))
    if not pairs:
        raise FormatError(f"{path} lists no pair: write `name0 name1` lines, or make a list with `pdc-sfm pairs`")
    return pairs


def check_name(name: str, where: str = "") -> None:
    """Refuse what cannot be the name of an image."""
    problem = name_problem(name)
    if problem:
        raise FormatError(f"{where}{textwrap.shorten(ascii(name), 80, placeholder='...')} {problem}")


def check_listed(first: str | None, *others: str) -> None:
    """Refuse names that cannot stand in a pair list; `first`, if any, is to begin a line."""
    for name in ((first,) if first is not None else ()) + others:
        if name.split() != [name]:
            raise FormatError(f"'{name}' cannot stand in a pair list, which separates names by blanks: rename it")
        check_name(name)
    if first is not None and first.startswith(("#", BOM)):
        raise FormatError(f"'{first}' cannot begin a line of a pair list, where it would be a comment: rename it")


def unique_pairs(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs without repetitions, reversed repetitions and pairs of an image with itself."""
    seen: dict[Pair, Pair] = {}
    for first, second in pairs:
        if first != second:
            seen.setdefault((min(first, second), max(first, second)), (first, second))
    return list(seen.values())


def pair_key(name0: str, name1: str, separator: str = "/") -> str:
    """The group of a pair in an hloc match file; files of older hloc versions have `_` as separator."""
    return separator.join((name0.replace("/", "-"), name1.replace("/", "-")))


def check_keys(pairs: Iterable[Pair]) -> None:
    """Refuse names that are none, and pairs that would overwrite each other: `a/b.jpg` and `a-b.jpg` are one in hloc files."""
    owners: dict[str, Pair] = {}
    for pair in pairs:
        for name in pair:
            check_name(name)
        for name0, name1 in (pair, pair[::-1]):
            other = owners.setdefault(pair_key(name0, name1), pair)
            if set(other) != set(pair):
                raise FormatError(
                    f"the pairs '{' '.join(other)}' and '{' '.join(pair)}' have the same name in hloc files, "
                    "where '/' and '-' are one: rename the images"
                )


def read_retrieval(path: Path | str) -> dict[str, list[str]]:
    """Query -> database images, best first. A row with the query alone means that nothing was retrieved for it."""
    retrieved: dict[str, list[str]] = {}
    for number, words in _rows(Path(path)):
        if len(words) > 2:
            raise FormatError(f"{path} line {number}: expected `query database`, not: {' '.join(words)}")
        for name in words:
            check_name(name, f"{path} line {number}: ")
        names = retrieved.setdefault(words[0], [])
        names += [name for name in words[1:] if name not in names]
    if not retrieved:
        raise FormatError(f"{path} lists no query")
    return retrieved


def write_pairs(path: Path | str, pairs: Iterable[Pair]) -> None:
    """Write a pair list at once. Names with spaces cannot be written: hloc and COLMAP split lines at blanks."""
    lines = []
    for pair in pairs:
        check_listed(*pair)
        lines.append(f"{pair[0]} {pair[1]}\n")
    write_text(path, "".join(lines))


def _rows(path: Path) -> Iterable[tuple[int, list[str]]]:
    if path.is_dir():
        raise FormatError(f"cannot read the pair list {path}: it is a folder")
    try:
        lines = read_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read the pair list {path}: {error}") from None
    rows = ((number, line.split()) for number, line in enumerate(lines, start=1))
    return [(number, words) for number, words in rows if words and not words[0].startswith("#")]


def natural_order(name: str) -> tuple[str, list[tuple[int, int | str]]]:
    """Sort key: folder first, then the name with its numbers as numbers."""
    folder, _, base = name.rpartition("/")
    parts = re.split(r"(\d+)", base)
    return folder, [(0, int(part)) if part.isdigit() else (1, part) for part in parts]
