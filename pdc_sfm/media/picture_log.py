"""The record of a folder of pictures while it is being filled: one line of JSON per picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.files import write_text
from pdc_sfm.paths import read_text


def read_journal(path: Path, origin: dict[str, Any]) -> list[dict[str, Any]]:
    """What a stopped call has written; the file, begun if there is none, can be appended to. `origin` decides the content."""
    lines = read_text(path).split("\n")[:-1] if path.is_file() else []  # the last may be half a line
    try:
        first, *rest = [json.loads(line) for line in lines] or [origin]
    except ValueError:
        raise other_content(path.parent) from None
    if first != origin:
        raise other_content(path.parent)
    write_text(path, "".join(f"{json.dumps(values)}\n" for values in (first, *rest)))
    return rest


def append_journal(path: Path, values: dict[str, Any]) -> None:
    """One more is there."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")


def other_content(folder: Path) -> OtherSettingsError:
    """A folder that may not be filled further."""
    return OtherSettingsError(
        f"{folder} holds pictures of another source, or with other settings: choose another output", folder
    )
