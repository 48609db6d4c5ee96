"""What stands in the h5 files of a folder."""

from __future__ import annotations

from pathlib import Path

import h5py


def content(folder: Path) -> dict[tuple[str, str], bytes]:
    """Every dataset of every h5 file of a folder."""
    found = {}
    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path) as file:
            file.visititems(lambda name, item, path=path: found.update({(path.name, name): item[()].tobytes()})
                            if isinstance(item, h5py.Dataset) else None)  # fmt: skip
    return found
