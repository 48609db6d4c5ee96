"""Renders a picture of a model without a window: points splatted far to near, cameras as small pyramids."""

from __future__ import annotations

import dataclasses

import numpy as np

CAMERA_COLOR = (214, 76, 43)


@dataclasses.dataclass(frozen=True)
class Viewpoint:
    """Where a picture is taken from: cam_from_world (3, 4), focal length in pixels, (width, height)."""

    cam_from_world: np.ndarray
    focal_length: float
    size: tuple[int, int]

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N, 3) -> pixels (N, 2) and depths (N,)."""
        local = points @ self.cam_from_world[:, :3].T + self.cam_from_world[:, 3]
        depth = local[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            pixels = self.focal_length * local[:, :2] / depth[:, None] + np.asarray(self.size) / 2
        return pixels, depth


def overview(
    poses: np.ndarray, points: np.ndarray, size: tuple[int, int], azimuth: float = 20.0, elevation: float = 15.0
) -> Viewpoint:
    """A view of points and cameras (N, 3, 4) from behind the cameras, turned and raised by degrees."""
    middle = np.median(points, axis=0)
    down, forward = (_unit(poses[:, row, :3].mean(axis=0)) for row in (1, 2))
    right = _unit(np.cross(down, forward))
    forward = np.cross(right, down)
    a, e = np.radians(azimuth), np.radians(elevation)
    level = np.cos(a) * forward + np.sin(a) * right
    axis = _unit(np.cos(e) * level + np.sin(e) * down)
    side = _unit(np.cross(down, axis))
    rotation = np.stack([side, np.cross(axis, side), axis])
    focal_length = 1.2 * max(size)
    centers = -np.einsum("nji,nj->ni", poses[:, :, :3], poses[:, :, 3])
    local = (np.concatenate([_core(points, middle), centers]) - middle) @ rotation.T
    shift = np.append((local[:, :2].min(axis=0) + local[:, :2].max(axis=0)) / 2, 0)
    middle, local = middle + shift @ rotation, local - shift
    room = 0.9 * np.asarray(size) / 2 / focal_length  # |x| / z of the picture's border
    distance = (np.abs(local[:, :2]) / room - local[:, 2:]).max()
    return Viewpoint(np.c_[rotation, -rotation @ (middle - distance * axis)], focal_length, size)


def draw(
    points: np.ndarray, colors: np.ndarray, poses: np.ndarray, view: Viewpoint, background: int = 255
) -> np.ndarray:
    """(H, W, 3) uint8 picture of (N, 3) points with (N, 3) uint8 colors and cameras (M, 3, 4)."""
    import cv2

    radius = 4 if len(points) < 20_000 else 3 if len(points) < 100_000 else 2  # of twice as fine pixels
    fine = Viewpoint(view.cam_from_world, 2 * view.focal_length, (2 * view.size[0], 2 * view.size[1]))
    width, height = fine.size
    image = np.full((height, width, 3), background, np.uint8)
    pixels, depth = fine.project(points)
    inside = (depth > 0) & (pixels >= radius).all(axis=1)
    inside &= (pixels < (width - radius - 1, height - radius - 1)).all(axis=1)
    order = np.flatnonzero(inside)[np.argsort(-depth[inside])]
    x, y = pixels[order].astype(int).T
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dx * dx + dy * dy <= radius * radius:
                image[y + dy, x + dx] = colors[order]  # the nearest is written last
    for pose in poses:
        _draw_camera(image, pose, fine, _camera_size(poses))
    return cv2.resize(image, view.size, interpolation=cv2.INTER_AREA)


def _draw_camera(image: np.ndarray, pose: np.ndarray, view: Viewpoint, scale: float) -> None:
    import cv2

    corners = scale * np.array([[0, 0, 0], [-0.6, -0.45, 1], [0.6, -0.45, 1], [0.6, 0.45, 1], [-0.6, 0.45, 1]])
    pixels, depth = view.project((corners - pose[:, 3]) @ pose[:, :3])
    if (depth <= 0).any() or np.abs(pixels).max() > 1e5:
        return
    pixels = np.round(pixels).astype(int)
    for first, second in ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1)):
        cv2.line(image, pixels[first].tolist(), pixels[second].tolist(), CAMERA_COLOR, 3, cv2.LINE_AA)


def _camera_size(poses: np.ndarray) -> float:
    """A pyramid as long as a third of the usual distance to the nearest other camera."""
    centers = -np.einsum("nji,nj->ni", poses[:, :, :3], poses[:, :, 3])
    if len(centers) < 2:
        return 0.1
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    return float(np.median(distances.min(axis=1))) / 3


def _core(points: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """The points without the farthest tenth, which would make the rest small."""
    distances = np.linalg.norm(points - middle, axis=1)
    return points[distances <= np.quantile(distances, 0.9)]


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
