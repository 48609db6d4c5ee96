"""The registry of formats, and the data that each one writes."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pdc_sfm.colmap.types import Camera, Reconstruction
from pdc_sfm.errors import SettingsError

# name -> what it is for
OWN = {
    "nerfstudio": "transforms.json, images and a cloud to begin with",
    "splats": "undistorted images and a COLMAP model in sparse/0, as trainers of Gaussian splats read them",
    "database": "a COLMAP database of keypoints and raw matches, for matches_importer and mapper",
    "bundler": "bundle.out and list.txt",
    "nvm": "VisualSFM's model.nvm",
    "ply": "points.ply and cameras.ply",
    "kapture": "kapture's folders: sensors, trajectories, points",
}


@dataclasses.dataclass(frozen=True)
class Export:
    """A map and the folder to write it to, in which the images lie already if the format wants them."""

    model: Reconstruction
    folder: Path
    source: Path  # of the model
    map: Path  # the map's own folder, which may hold the model's

    def views(self) -> Iterator[tuple[str, Camera, np.ndarray]]:
        """Name, camera and cam_from_world (3, 4) of the registered images, in the order of their names."""
        for image_id in self.image_ids():
            image = self.model.image(image_id)
            yield image.name, self.model.camera(image.camera_id), np.asarray(image.cam_from_world().matrix())

    def image_ids(self) -> list[int]:
        """Of the registered images, in the order of their names."""
        return sorted(self.model.reg_image_ids(), key=lambda image_id: self.model.image(image_id).name)


Writer = Callable[[Export], str]  # returns what to say of it


@dataclasses.dataclass(frozen=True)
class Format:
    """How a format is written."""

    write: Writer
    images: str | None  # folder that the images are copied to; None: it has none
    holds: Callable[[Camera], bool]  # cameras it can say; if it cannot say one, all images are undistorted
    separators: str  # that no name may have


_registered: dict[str, Format] = {}


def register(
    name: str,
    *,
    images: str | None = None,
    holds: Callable[[Camera], bool] = lambda camera: True,
    separators: str = "",
) -> Callable[[Writer], Writer]:
    """Make a function the writer of `export --to NAME`."""

    def add(write: Writer) -> Writer:
        _registered[name] = Format(write, images, holds, separators)
        return write

    return add


def format_names() -> list[str]:
    """What `--to` can be."""
    return list(dict.fromkeys((*OWN, *_registered)))


def find_format(name: str) -> Format:
    """The format of a name; its file is loaded when it is first asked for."""
    if name not in _registered:
        if name not in OWN:
            close = difflib.get_close_matches(name, format_names(), n=1)
            hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(format_names())}"
            raise SettingsError(f"there is no format {name}: {hint}")
        importlib.import_module(f"pdc_sfm.export.{name}")
    return _registered[name]
