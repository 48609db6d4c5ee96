"""Where the pixels of one picture are in another, and whether they can be seen there."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.renderer import Rendering

_TOLERANCE = 2e-3  # of inverse depth: far below the shallowest relief, far above float32


def flow_between(reference: Rendering, query: Rendering) -> tuple[np.ndarray, np.ndarray]:
    """Flow (H, W, 2) float32 from reference to query pixels, in pixel indices, and visibility (H, W) bool.

    The flow is defined wherever the reference shows a surface, also where the query does not see it; it is 0 in the sky.
    What moves is never visible: its place in the other picture is unknown.
    """
    flow, visible = flow_from_depth(reference.camera, reference.depth, query.camera, query.depth)
    return flow, visible & ~reference.moving & ~_nearest(query.moving, flow, reference.camera)


def flow_from_depth(
    reference: Camera, reference_depth: np.ndarray, query: Camera, query_depth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same from depth maps (H, W) alone, 0 where there is none."""
    grid = reference.pixel_grid()
    solid = reference_depth > 0
    pixels, depth, seen = sight(query, query_depth, reference.lift(grid[solid], reference_depth[solid]))
    flow, visible = np.zeros((*solid.shape, 2), np.float32), np.zeros_like(solid)
    flow[solid] = np.where((depth > 0)[:, None], pixels - grid[solid], 0)
    visible[solid] = seen
    return flow, visible


def sight(camera: Camera, depth_map: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """World points (n, 3) in a picture: pixel indices (n, 2), depth (n,), and whether the picture shows them (n,)."""
    pixels, depth = camera.project(points)
    inside = (depth > 0) & (pixels >= 0).all(-1) & (pixels <= np.array([camera.width - 1, camera.height - 1])).all(-1)
    seen = np.zeros(len(points), bool)
    seen[inside] = _in_sight(pixels[inside], depth[inside], depth_map)
    return pixels, depth, seen


def _in_sight(pixels: np.ndarray, depth: np.ndarray, query_depth: np.ndarray) -> np.ndarray:
    """Compare with the query's own depth. Inverse depth is linear on planes, so interpolating it is exact there;
    at edges, where the four pixels around lie on different surfaces, the nearest one decides."""
    height, width = query_depth.shape
    x0 = np.clip(np.floor(pixels[:, 0]).astype(int), 0, width - 2)
    y0 = np.clip(np.floor(pixels[:, 1]).astype(int), 0, height - 2)
    fx, fy = pixels[:, 0] - x0, pixels[:, 1] - y0
    with np.errstate(divide="ignore"):
        inverse = np.where(query_depth > 0, 1 / query_depth.astype(np.float64), 0)
    a, b, c, d = (inverse[y0 + dy, x0 + dx] for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)))
    wanted = 1 / depth
    between = (a * (1 - fx) + b * fx) * (1 - fy) + (c * (1 - fx) + d * fx) * fy
    planar = np.abs(between - wanted) < _TOLERANCE * wanted
    nearest = inverse[np.rint(pixels[:, 1]).astype(int), np.rint(pixels[:, 0]).astype(int)]
    return planar | (np.abs(nearest - wanted) < _TOLERANCE * wanted)


def _nearest(mask: np.ndarray, flow: np.ndarray, reference: Camera) -> np.ndarray:
    """A query mask looked up where each reference pixel lands."""
    at = np.rint(reference.pixel_grid() + flow).astype(int)
    height, width = mask.shape
    return mask[np.clip(at[..., 1], 0, height - 1), np.clip(at[..., 0], 0, width - 1)]
