"""Which way is right, down and forward for the person who took a photograph, in the coordinates of a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.georeference.similarity import Axes
from pdc_sfm.orientation import UPRIGHT, Orientation, orientation_of

HEAD = 1 << 18  # bytes at the start of a file that hold its EXIF


def held_axes(model: pycolmap.Reconstruction, ids: Mapping[str, int], images: Path) -> Axes:
    """Axes of the images of a model (name -> image id) as they were held, by their EXIF orientation."""
    found = []
    for name, image_id in ids.items():
        rotation = np.asarray(model.image(image_id).cam_from_world().matrix())[:, :3]
        right, down = _sides(_orientation(images / name))
        found.append((right @ rotation, down @ rotation, rotation[2]))
    right, down, forward = (np.array(some) for some in zip(*found))
    return Axes(right, down, forward)


def _orientation(path: Path) -> Orientation:
    try:
        with open(path, "rb") as file:
            return orientation_of(file.read(HEAD))
    except OSError:
        return UPRIGHT


def _sides(orientation: Orientation) -> tuple[np.ndarray, np.ndarray]:
    """Right and down of the upright picture, as directions (3,) of the camera, whose axes are those of the stored pixels."""
    corners = orientation.stored_points(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), (1, 1))
    return np.r_[corners[1] - corners[0], 0.0], np.r_[corners[2] - corners[0], 0.0]
