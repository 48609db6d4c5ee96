"""Control points and known distances in a map: triangulated from the images that show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pycolmap
from scipy.optimize import least_squares

from pdc_sfm.pixels import to_colmap
from pdc_sfm.store.control import Control

PIXELS = 1.0  # to which a person marks a point
MAX_PIXELS = 10.0  # root mean square: beyond, a point was marked wrongly somewhere
DISAGREE = 5.0  # sigmas between two known distances


@dataclasses.dataclass(frozen=True)
class ControlPoint:
    """Where a map puts a point."""

    place: np.ndarray  # (3,)
    sigma: float  # in the map's unit, by the marks' own error
    pixels: float  # root mean square distance of the marks from it


def place_control(model: pycolmap.Reconstruction, control: Control) -> tuple[dict[str, ControlPoint], tuple[str, ...]]:
    """Points that two registered images show at least, and what is wrong with others."""
    images = {model.image(i).name: model.image(i) for i in model.reg_image_ids()}
    found, remarks = {}, []
    for name, seen in control.seen.items():
        there = [(images[image], at) for image, at in seen.items() if image in images]
        point = _triangulate(model, there) if len(there) > 1 else None
        if point is None:
            remarks.append(
                f"control point {name} is not used: {len(there)} of the {len(seen)} images that show it help"
            )
        elif point.pixels > MAX_PIXELS:
            remarks.append(
                f"control point {name} is not used: its marks lie {point.pixels:.0f} px from one place; is one of them "
                "another point?"
            )
        else:
            found[name] = point
    return found, tuple(remarks)


def _triangulate(
    model: pycolmap.Reconstruction, seen: list[tuple[pycolmap.Image, tuple[float, float]]]
) -> ControlPoint | None:
    """The place that most nearly is where images show it; None if they see it from one place."""
    poses = [np.asarray(image.cam_from_world().matrix()) for image, _ in seen]
    cameras = [model.camera(image.camera_id) for image, _ in seen]
    marks = [to_colmap(np.array([at], np.float64)) for _, at in seen]
    lines, rows = np.zeros((3, 3)), np.zeros(3)
    for pose, camera, mark in zip(poses, cameras, marks):
        ray = pose[:, :3].T @ np.r_[np.asarray(camera.cam_from_img(mark))[0], 1.0]
        across = np.eye(3) - np.outer(ray, ray) / (ray @ ray)
        lines, rows = lines + across, rows - across @ pose[:, :3].T @ pose[:, 3]
    values = np.linalg.eigvalsh(lines)
    if values[0] < 1e-4 * values[2]:  # about half a degree between the rays
        return None
    start = np.linalg.solve(lines, rows)

    def errors(point: np.ndarray) -> np.ndarray:
        seen_at = []
        for pose, camera, mark in zip(poses, cameras, marks):
            local = pose[:, :3] @ point + pose[:, 3]
            local[2] = max(local[2], 1e-6)
            seen_at.append((np.asarray(camera.img_from_cam(local[None])) - mark)[0] / PIXELS)
        return np.concatenate(seen_at)

    solved = least_squares(errors, start, x_scale=np.linalg.norm(start - poses[0][:, :3].T @ -poses[0][:, 3]) + 1e-9)
    covariance = np.linalg.pinv(solved.jac.T @ solved.jac)
    pixels = float(np.sqrt((solved.fun**2).sum() / len(seen)) * PIXELS)
    return ControlPoint(solved.x, float(np.sqrt(np.trace(covariance) / 3)), pixels)


def known_scale(
    model: pycolmap.Reconstruction, control: Control, points: Mapping[str, ControlPoint]
) -> tuple[tuple[float, float] | None, tuple[str, ...], tuple[str, ...]]:
    """Metres of the map's unit and their relative sigma by known distances; remarks; and doubts, where these disagree."""
    places = {model.image(i).name: (model.image(i).projection_center(), 0.0) for i in model.reg_image_ids()}
    places |= {name: (point.place, point.sigma) for name, point in points.items()}
    logs, sigmas, said, remarks = [], [], [], []
    for (first, second), (metres, sigma) in control.distances.items():
        missing = [name for name in (first, second) if name not in places]
        if missing:
            remarks.append(f"the distance {first} - {second} is not used: {missing[0]} is not in the map")
            continue
        (place0, error0), (place1, error1) = places[first], places[second]
        length = float(np.linalg.norm(np.asarray(place0) - np.asarray(place1)))
        if length < 1e-12:
            remarks.append(f"the distance {first} - {second} is not used: the map has both at one place")
            continue
        logs.append(np.log(metres / length))
        sigmas.append(float(np.hypot(sigma / metres, np.hypot(error0, error1) / length)))
        said.append(f"{first} - {second}")
    if not logs:
        return None, tuple(remarks), ()
    weights = 1 / np.square(sigmas)
    mean = float(np.average(logs, weights=weights))
    off = np.abs(np.array(logs) - mean) / sigmas
    doubts: tuple[str, ...] = ()
    if len(logs) > 1 and off.max() > DISAGREE:
        worst = int(off.argmax())
        doubts = (
            f"known distances disagree: {said[worst]} would make the map {np.expm1(logs[worst] - mean):+.1%} larger than all "
            "together; is one of them wrong?",
        )
    spread = float(np.std(logs) / max(len(logs) - 1, 1) ** 0.5)
    return (float(np.exp(mean)), max(float(weights.sum() ** -0.5), spread)), tuple(remarks), doubts
