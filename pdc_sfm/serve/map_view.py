"""The map as a page shows it: cameras, points by level of detail, small images."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from pdc_sfm.client.answers import MappedImage, MapSummary
from pdc_sfm.colmap.io.models import model_poses
from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers
from pdc_sfm.errors import ImageError
from pdc_sfm.evaluation.measures.poses import camera_center
from pdc_sfm.images import fitted_size, read_photograph, resize_image
from pdc_sfm.report.model3d import frame, upright
from pdc_sfm.serve.resident_map import ResidentMap

QUALITY = 80  # of small JPEG images


_kept: WeakKeyDictionary[ResidentMap, tuple[np.ndarray, np.ndarray]] = (
    WeakKeyDictionary()
)  # a map that is replaced goes


def _drawn(held: ResidentMap) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, 3) and colors (N, 3) in an order whose beginnings are evenly drawn from all."""
    found = _kept.get(held)
    if found is None:
        points, colors = model_points(held.model)
        keep = np.flatnonzero(remove_outliers(points)) if len(points) else np.zeros(0, int)
        order = np.random.default_rng(0).permutation(keep)
        found = _kept[held] = points[order].astype("<f4"), colors[order].astype(np.uint8)
    return found


def map_points(held: ResidentMap, most: int) -> bytes:
    """So many points: all places, then all colors."""
    points, colors = (rows[:most] for rows in _drawn(held))
    return points.tobytes() + colors.tobytes()


def map_summary(held: ResidentMap) -> MapSummary:
    """What there is, and how to look at it first."""
    points, _ = _drawn(held)
    poses = model_poses(held.model)
    world = upright(np.stack(list(poses.values())))
    centers = camera_center(np.stack(list(poses.values())))
    seen = frame((points if len(points) else centers) @ world.T, centers @ world.T)
    images = []
    for name, number in held.ids.items():
        camera = held.model.camera(held.model.image(number).camera_id)
        position = camera_center(poses[name][None])[0].tolist()
        focal = camera.mean_focal_length() / camera.width
        size = camera.width, camera.height
        images.append(MappedImage(number, name, position, poses[name].tolist(), *size, focal))
    folder = held.files.model.resolve()
    return MapSummary(
        folder.parent.name if folder.name == "sfm" else folder.name,
        held.state,
        held.metres,
        held.model.num_points3D(),
        images,
        world.tolist(),
        seen.center.tolist(),
        seen.radius,
        *(held.frame.origin[:2] if held.frame is not None and held.frame.origin is not None else ()),
    )


def thumbnail(held: ResidentMap, number: int, side: int) -> bytes | None:
    """An image of the map as a JPEG of at most so many pixels a side; None if there is none."""
    import cv2

    name = next((name for name, own in held.ids.items() if own == number), None)
    if name is None:
        return None
    try:
        pixels = read_photograph(held.files.images / name).pixels
    except ImageError:
        return None
    size = pixels.shape[1], pixels.shape[0]
    small = resize_image(pixels, fitted_size(size, None, min(side, max(size))))
    return cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes()
