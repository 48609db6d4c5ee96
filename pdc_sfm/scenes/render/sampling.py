"""Where to shade: once per pixel inside a surface, once per surface in pixels that several surfaces share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.mesh import Mesh
from pdc_sfm.scenes.render.raster import NOTHING, draw, pinhole_drawing

SUB = 3  # samples along a pixel's side; odd, so that one lies in the middle


@dataclass(frozen=True)
class Sampling:
    """m places to shade. Their colors, weighted, add up to the picture."""

    pixel: np.ndarray  # (m,) flat pixel index
    quad: np.ndarray  # (m,) NOTHING for sky
    weight: np.ndarray  # (m,) float32
    rays: np.ndarray  # (m, 3) world, with depth 1 along the optical axis
    depth: np.ndarray  # (m,) inf for sky
    center_quad: np.ndarray  # (H, W) quad in the middle of each pixel
    center_depth: np.ndarray  # (H, W) float64, inf for sky


def sample_view(mesh: Mesh, camera: Camera) -> Sampling:
    """Cast SUB x SUB rays per pixel and gather those that hit the same quad."""
    width, height = camera.size
    size = (width * SUB, height * SUB)
    fine = np.diag([SUB, SUB, 1.0]) @ np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]]) @ camera.matrix
    fine[:2, 2] += SUB // 2
    drawing = pinhole_drawing(mesh, camera.cam_from_world, fine, size)
    owner, _ = draw(drawing, size)
    owner = owner.reshape(height, SUB, width, SUB).transpose(0, 2, 1, 3).reshape(height * width, SUB * SUB)
    pixel, quad, weight, offset = _gather(owner)
    planes = np.zeros((len(mesh) + 1, 3))  # the last row serves NOTHING: index -1
    planes[drawing.quads] = drawing.nearness
    x, y = pixel % width + offset[:, 0], pixel // width + offset[:, 1]
    center = owner[:, SUB * SUB // 2].reshape(height, width)
    grid = camera.pixel_grid()
    return Sampling(
        pixel,
        quad,
        weight,
        _rays(camera, x, y),
        _depth(planes[quad], x, y),
        center,
        _depth(planes[center], grid[..., 0], grid[..., 1]),
    )


def _gather(owner: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Owners (pixels, SUB^2) -> pixel, quad, weight and mean offset from the pixel's middle of each distinct pair."""
    middle = owner[:, SUB * SUB // 2]
    mixed = (owner != middle[:, None]).any(1)
    plain = np.flatnonzero(~mixed)
    edge = np.flatnonzero(mixed)
    order = np.argsort(owner[edge], axis=1, kind="stable")
    quads = np.take_along_axis(owner[edge], order, 1)
    starts = np.ones_like(quads, bool)
    starts[:, 1:] = quads[:, 1:] != quads[:, :-1]
    group = np.cumsum(starts.reshape(-1)) - 1
    count = np.bincount(group)
    step = (np.arange(SUB) - SUB // 2) / SUB
    dx, dy = np.tile(step, SUB), np.repeat(step, SUB)
    offset = np.stack([np.bincount(group, d[order].reshape(-1)) for d in (dx, dy)], 1) / np.maximum(count, 1)[:, None]
    pixel = np.concatenate([plain, np.repeat(edge, SUB * SUB)[starts.reshape(-1)]])
    quad = np.concatenate([middle[plain], quads.reshape(-1)[starts.reshape(-1)]])
    weight = np.concatenate([np.ones(len(plain)), count / SUB**2]).astype(np.float32)
    return pixel, quad, weight, np.concatenate([np.zeros((len(plain), 2)), offset])


def _rays(camera: Camera, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    local = np.stack(
        [(x + 0.5 - camera.width / 2) / camera.focal, (y + 0.5 - camera.height / 2) / camera.focal, np.ones_like(x)], 1
    )
    return local @ camera.cam_from_world[:, :3]


def _depth(planes: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    nearness = planes[..., 0] * (SUB * x + SUB // 2) + planes[..., 1] * (SUB * y + SUB // 2) + planes[..., 2]
    with np.errstate(divide="ignore"):
        return np.where(nearness > 0, 1 / nearness, np.inf)


def is_sky(quad: np.ndarray) -> np.ndarray:
    return quad == NOTHING
