"""Which quad is seen at each sample of a raster: exact ray casting, organized by quad.

In a pinhole view the test "ray inside a convex quad" is four linear functions of the pixel, and the inverse depth on a
plane is one more. In a parallel view (the sun's) the same holds with the distance along the light in place of inverse
depth. So one routine draws both, and depths come from the planes themselves, never from interpolated corners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.scenes.render.mesh import Mesh

NEAR = 0.05  # metres
NOTHING = -1
_SMALL = 1500  # samples of a bounding box below which quads are drawn together
_CHUNK = 1_000_000  # samples drawn together at most
_SLACK = 1e-3  # samples: neighbors overlap by this, so that float32 leaves no pinholes between them


@dataclass(frozen=True)
class Drawing:
    """Quads prepared for a raster: linear functions a x + b y + c of the sample position."""

    edges: np.ndarray  # (n, 4, 3) non-negative inside, in samples
    nearness: np.ndarray  # (n, 3) inverse depth, or minus the distance along a parallel view
    boxes: np.ndarray  # (n, 4) x0, y0, x1, y1 in samples, half open
    quads: np.ndarray  # (n,) index into the mesh


def pinhole_drawing(mesh: Mesh, cam_from_world: np.ndarray, calibration: np.ndarray, size: tuple[int, int]) -> Drawing:
    """Prepare a pinhole view: (3, 4) pose, (3, 3) calibration with sample centers at whole numbers, (w, h) samples."""
    points = mesh.corners @ cam_from_world[:, :3].T + cam_from_world[:, 3]  # (n, 4, 3)
    normal = mesh.normal @ cam_from_world[:, :3].T
    offset = np.einsum("ni,ni->n", normal, points[:, 0])
    keep = (points[..., 2] > NEAR).any(1) & (mesh.two_sided | (offset < 0)) & (np.abs(offset) > 1e-9)
    index = np.flatnonzero(keep)
    boxes = _pinhole_boxes(points[index], calibration, size)
    seen = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    index, boxes = index[seen], boxes[seen]
    points, rays = points[index], np.linalg.inv(calibration)  # ray = rays @ (x, y, 1)
    edges = np.cross(points, np.roll(points, -1, 1))  # plane through the camera and each side
    edges *= np.sign(np.einsum("nej,nj->ne", edges, points.mean(1)))[..., None]
    nearness = (normal[index] / offset[index, None]) @ rays
    return Drawing(_in_samples(edges @ rays), nearness, boxes, index)


def parallel_drawing(mesh: Mesh, raster_from_world: np.ndarray, size: tuple[int, int]) -> Drawing:
    """Prepare a parallel view: (3, 4) maps the world to sample x, sample y and distance. All faces cast shadows."""
    points = mesh.corners @ raster_from_world[:, :3].T + raster_from_world[:, 3]
    limit = np.array([*size, *size])
    low, high = np.ceil(points[..., :2].min(1) - _SLACK), np.floor(points[..., :2].max(1) + _SLACK) + 1
    boxes = np.clip(np.concatenate([low, high], 1), 0, limit).astype(np.int64)
    normal = np.cross(points[:, 2] - points[:, 0], points[:, 3] - points[:, 1])
    keep = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1]) & (np.abs(normal[:, 2]) > 1e-9)
    index = np.flatnonzero(keep)
    points, normal, boxes = points[index], normal[index], boxes[index]
    side = np.roll(points, -1, 1) - points
    edges = np.stack([-side[..., 1], side[..., 0], side[..., 1] * points[..., 0] - side[..., 0] * points[..., 1]], -1)
    center = np.concatenate([points[..., :2].mean(1), np.ones((len(points), 1))], 1)
    edges *= np.sign(np.einsum("nej,nj->ne", edges, center))[..., None]
    slope = normal[:, :2] / normal[:, 2:]
    level = points[:, 0, 2] + np.einsum("ni,ni->n", slope, points[:, 0, :2])
    return Drawing(_in_samples(edges), np.concatenate([slope, -level[:, None]], 1), boxes, index)


def draw(drawing: Drawing, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Nearest quad per sample (h, w) int32, NOTHING where none, and its nearness (h, w) float32 (-inf where none)."""
    width, height = size
    nearest = np.full((height, width), -np.inf, np.float32)
    owner = np.full((height, width), NOTHING, np.int32)
    extent = drawing.boxes[:, 2:] - drawing.boxes[:, :2]
    large = extent.prod(1) > _SMALL
    edges, nearness = drawing.edges.astype(np.float32), drawing.nearness.astype(np.float32)
    xs, ys = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    for i in np.flatnonzero(large):
        _draw_large(edges[i], nearness[i], drawing.boxes[i], drawing.quads[i], xs, ys, nearest, owner)
    small = np.flatnonzero(~large)
    rows = np.cumsum(extent[small].prod(1))
    for part in np.split(small, np.searchsorted(rows, np.arange(_CHUNK, rows[-1] if len(rows) else 0, _CHUNK))):
        if len(part):
            _draw_small(drawing, part, nearest.reshape(-1), owner.reshape(-1), width)
    return owner, nearest


def _draw_large(
    edges: np.ndarray,
    nearness: np.ndarray,
    box: np.ndarray,
    quad: int,
    xs: np.ndarray,
    ys: np.ndarray,
    nearest: np.ndarray,
    owner: np.ndarray,
) -> None:
    x0, y0, x1, y1 = box
    x, y = xs[x0:x1], ys[y0:y1]
    window = nearest[y0:y1, x0:x1]
    value = nearness[0] * x + (nearness[1] * y + nearness[2])
    hit = value > window
    for a, b, c in edges:
        if a or b:
            hit &= a * x + (b * y + (c + np.float32(_SLACK))) >= 0
    np.copyto(window, value, where=hit)
    np.copyto(owner[y0:y1, x0:x1], quad, where=hit)


def _draw_small(drawing: Drawing, part: np.ndarray, nearest: np.ndarray, owner: np.ndarray, width: int) -> None:
    """Many quads at once: their rows, the span of each row inside the quad, then the samples of all spans."""
    boxes = drawing.boxes[part]
    heights = boxes[:, 3] - boxes[:, 1]
    row_of = np.repeat(np.arange(len(part)), heights)
    y = _counting(heights) + boxes[row_of, 1]
    left, right = boxes[row_of, 0].astype(float), boxes[row_of, 2] - 1.0
    for e in range(4):
        a, b, c = (drawing.edges[part, e, k][row_of] for k in range(3))
        rest = b * y + c + _SLACK
        with np.errstate(divide="ignore", invalid="ignore"):
            cut = -rest / a
        left = np.where(a > 1e-9, np.maximum(left, cut), left)
        right = np.where(a < -1e-9, np.minimum(right, cut), right)
        right = np.where((np.abs(a) <= 1e-9) & (rest < 0), -1.0, right)
    left, right = np.ceil(left).astype(np.int64), np.floor(right).astype(np.int64)
    spans = np.maximum(right - left + 1, 0)
    span_of = np.repeat(np.arange(len(spans)), spans)
    x = _counting(spans) + left[span_of]
    start = drawing.nearness[part, 1][row_of] * y + drawing.nearness[part, 2][row_of]
    value = (drawing.nearness[part, 0][row_of][span_of] * x + start[span_of]).astype(np.float32)
    place = (y * width)[span_of] + x
    ahead = value > nearest[place]
    place, value, quad = place[ahead], value[ahead], drawing.quads[part][row_of][span_of[ahead]]
    np.maximum.at(nearest, place, value)
    first = nearest[place] == value
    owner[place[first]] = quad[first]


def _counting(lengths: np.ndarray) -> np.ndarray:
    """0..n-1 for each n of `lengths`, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _in_samples(edges: np.ndarray) -> np.ndarray:
    """Scale linear functions to distances in samples; a side of no length (of a triangle) is always inside."""
    length = np.linalg.norm(edges[..., :2], axis=-1, keepdims=True)
    return np.where(length > 1e-12, edges / np.maximum(length, 1e-12), [0.0, 0.0, 1.0])


def _pinhole_boxes(points: np.ndarray, calibration: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Sample boxes of quads (n, 4, 3) in camera coordinates, those through the near plane cut there."""
    ahead = np.roll(points, -1, 1)
    z0, z1 = points[..., 2], ahead[..., 2]
    crossing = (z0 > NEAR) != (z1 > NEAR)
    fraction = ((NEAR - z0) / np.where(crossing, z1 - z0, 1.0))[..., None]
    cuts = np.where(crossing[..., None], points + fraction * (ahead - points), np.nan)
    valid = np.where((z0 > NEAR)[..., None], points, np.nan)
    candidates = np.concatenate([valid, cuts], 1)
    projected = (candidates[..., :2] / candidates[..., 2:]) @ calibration[:2, :2].T + calibration[:2, 2]
    low, high = np.nanmin(projected, 1), np.nanmax(projected, 1)
    low, high = np.ceil(low - _SLACK), np.floor(high + _SLACK) + 1
    return np.clip(np.concatenate([low, high], 1), 0, [*size, *size]).astype(np.int64)
