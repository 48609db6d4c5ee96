"""Shared by Bundler and NVM: one focal length, the image center as origin, tracks of observations."""

from __future__ import annotations

import logging

import numpy as np

from pdc_sfm.colmap.io.cameras import FOCAL_LENGTHS, camera_parameters
from pdc_sfm.colmap.types import Camera
from pdc_sfm.export.formats import Export

log = logging.getLogger(__name__)


def parameters(camera: Camera) -> dict[str, float]:
    """By COLMAP's names."""
    return {name: float(v) for name, v in zip(camera_parameters(camera.model_name), camera.params)}


def focal_length(camera: Camera) -> float:
    """The mean of both axes."""
    return float(np.mean([value for name, value in parameters(camera).items() if name in FOCAL_LENGTHS]))


def warn_of_losses(export: Export, called: str) -> None:
    """Say by how much the format is off: pixels at the edge of an image for focal lengths, and the principal point's."""
    stretch = shift = 0.0
    for _, camera, _ in export.views():
        values, f = parameters(camera), focal_length(camera)
        half = np.array([camera.width, camera.height]) / 2
        both = np.array([values.get("fx", f), values.get("fy", f)])
        stretch = max(stretch, float((np.abs(both / f - 1) * half).max()))
        shift = max(shift, float(np.abs(np.array([values["cx"], values["cy"]]) - half).max()))
    if stretch > 1e-6:
        log.warning(f"{called} has one focal length: the mean of both is up to {stretch:.2g} px off at an image's edge")
    if shift > 1e-6:
        log.warning(
            f"{called} has no principal point: observations are relative to it, which is up to {shift:.2g} px off the "
            "image's center"
        )


def tracks(export: Export) -> list[tuple[np.ndarray, np.ndarray, list[tuple[int, int, float, float]]]]:
    """Of each point: place, color, and its observations (image in the order of names, keypoint, x, y).

    x to the right and y down, in pixels from the principal point.
    """
    row_of = {image_id: row for row, image_id in enumerate(export.image_ids())}
    centers, places = {}, {}
    for image_id in row_of:
        image = export.model.image(image_id)
        values = parameters(export.model.camera(image.camera_id))
        centers[image_id] = np.array([values["cx"], values["cy"]])
        places[image_id] = np.array([point.xy for point in image.points2D]).reshape(-1, 2)
    found = []
    for point in export.model.points3D.values():
        observations = []
        for element in point.track.elements:
            x, y = places[element.image_id][element.point2D_idx] - centers[element.image_id]
            observations.append((row_of[element.image_id], int(element.point2D_idx), float(x), float(y)))
        found.append((np.asarray(point.xyz), np.asarray(point.color), observations))
    return found


def words(*values: float) -> str:
    """Numbers with all their digits, separated by blanks."""
    return " ".join(repr(float(value)) for value in values)
