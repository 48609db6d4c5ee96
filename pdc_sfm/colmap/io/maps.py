"""The files of a map: its model, and the images and features it was made from."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.io.models import SUMMARY
from pdc_sfm.errors import FormatError

_MODEL_FILES = ("cameras", "images", "points3D")
_PLACES = ("*", "sparse", "sparse/*", "models/*")  # below a folder, where COLMAP and we put models


@dataclasses.dataclass(frozen=True)
class MapFiles:
    """A model, and what is known of its inputs."""

    model: Path
    images: Path | None = None
    features: Path | None = None


def find_map(folder: Path | str) -> MapFiles:
    """Of what `reconstruct` or `triangulate` wrote, of a run's folder, or of COLMAP's own output."""
    folder = Path(folder)
    if not (folder / SUMMARY).is_file() and (folder / "sfm" / SUMMARY).is_file():
        return MapFiles(folder / "sfm", folder / "images", folder / "features.h5")
    if not (folder / SUMMARY).is_file():
        return MapFiles(_only_model(folder))
    try:
        known: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8")).get("inputs", {})
    except (OSError, ValueError, AttributeError) as error:
        raise FormatError(f"cannot read {folder / SUMMARY}: {error}") from None
    images, features = known.get("images"), known.get("features")
    return MapFiles(folder, Path(images) if images else None, Path(features) if features else None)


def has_model(folder: Path) -> bool:
    """Whether a folder has the files of a COLMAP model."""
    return any(all((folder / f"{name}.{end}").is_file() for name in _MODEL_FILES) for end in ("bin", "txt"))


def _only_model(folder: Path) -> Path:
    """A folder that is a model, or the one model below it; the folder itself where there is none, for its reader to refuse."""
    if has_model(folder):
        return folder
    below = sorted({path for place in _PLACES for path in folder.glob(place) if has_model(path)})
    if len(below) > 1:
        listed = ", ".join(str(path) for path in below[:5]) + ("" if len(below) <= 5 else ", ...")
        raise FormatError(f"{folder} holds {len(below)} models ({listed}): give the folder of one of them")
    return below[0] if below else folder
