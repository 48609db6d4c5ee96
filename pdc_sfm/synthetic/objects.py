"""Independently moving objects, and which pixels the loss may use (Sec. 3.5-3.6).

Each object is one of the paper's cases: A only in the reference, B only in the query, C in both with an affine motion.
Objects are layers above the background, later ones on top, in both images. A point of an object has one position in the
cut-out (`*_from_*` are exact affine maps), so coverage, flow and collisions are evaluated exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np

from pdc_sfm.synthetic.warps import ImageFrame, jacobian

Case = Literal["A", "B", "C"]
Mask = Literal["none", "injective", "occlusion"]

LONGEST_ROW = 32_000  # points that OpenCV samples at once


@dataclass(frozen=True)
class MovingObject:
    """A cut-out and where it stands: (2, 3) affine maps from cut-out to image pixels, None where it is not seen."""

    rgba: np.ndarray  # (h, w, 4) uint8
    reference_from_cutout: np.ndarray | None
    query_from_cutout: np.ndarray | None

    @property
    def case(self) -> Case:
        if self.query_from_cutout is None:
            return "A"
        return "B" if self.reference_from_cutout is None else "C"

    def query_from_reference(self) -> np.ndarray:
        """(2, 3): the object's own motion, the foreground flow of the paper (case C only)."""
        assert self.query_from_cutout is not None
        assert self.reference_from_cutout is not None
        return compose(self.query_from_cutout, invert(self.reference_from_cutout))

    def covers(self, image_from_cutout: np.ndarray | None, points: np.ndarray) -> np.ndarray:
        """(..., 2) image points -> (...) bool: on the object, which is seen in that image."""
        assert image_from_cutout is not None
        at = transform(invert(image_from_cutout), points)
        alpha = np.ascontiguousarray(self.rgba[..., 3])
        rows = [at] if at.ndim == 3 else [row[None] for row in np.split(at, range(LONGEST_ROW, len(at), LONGEST_ROW))]
        found = np.concatenate([_sample(alpha, row, cv2.INTER_LINEAR) for row in rows], axis=None)
        return (found > 127).reshape(points.shape[:-1])


@dataclass(frozen=True)
class Layers:
    """The composed ground truth of a pair, each (H, W)."""

    target: np.ndarray  # (H, W, 2) float32: where the reference pixel goes in the query
    mask: np.ndarray  # bool: takes part in the loss
    visible: np.ndarray  # bool: really seen in the query


def compose_layers(background: np.ndarray, objects: Sequence[MovingObject], frame: ImageFrame, mask: Mask) -> Layers:
    """The flow's targets and masks of a pair from its background's targets (H, W, 2) and its objects, bottom to top."""
    grid, target = frame.grid(), background.copy()
    layer = np.zeros(grid.shape[:2], np.int8)  # whose flow a pixel has; case A leaves that of what is below (Sec. 3.6)
    hidden = np.zeros(layer.shape, bool)  # Omega_occ: A, B' and C'
    for k, item in enumerate(objects, 1):
        if item.case == "B":
            continue
        covered = item.covers(item.reference_from_cutout, grid)
        hidden[covered] = item.case == "A"
        if item.case == "C":
            target[covered] = transform(item.query_from_reference(), grid[covered])
            layer[covered] = k
    collides = np.zeros(layer.shape, bool)  # Omega_inj: C' where C itself is the one to keep
    for k, item in enumerate(objects, 1):
        if item.case == "A":
            continue
        covered = (layer < k) & item.covers(item.query_from_cutout, target)
        hidden |= covered
        if item.case == "C":
            same = transform(invert(item.query_from_reference()), target[covered])
            collides[covered] |= _owns(same, objects, k, frame)
    allowed = {"none": np.ones_like(hidden), "injective": ~collides, "occlusion": ~hidden}[mask]
    return Layers(target, allowed, frame.contains(target) & ~hidden)


def _owns(points: np.ndarray, objects: Sequence[MovingObject], k: int, frame: ImageFrame) -> np.ndarray:
    """(N, 2) reference points on object k -> (N,) bool: in the frame, and no later object C took the flow there."""
    x, y = points[:, 0], points[:, 1]
    owns = (x >= -0.5) & (y >= -0.5) & (x < frame.width - 0.5) & (y < frame.height - 0.5)
    for item in objects[k:]:
        if item.case == "C" and len(points):
            owns &= ~item.covers(item.reference_from_cutout, points)
    return owns


def paste(image: np.ndarray, rgba: np.ndarray, image_from_cutout: np.ndarray) -> None:
    """Draw a cut-out into an (H, W, 3) uint8 image in place, edges blended, small copies area-averaged."""
    scale = math.sqrt(abs(np.linalg.det(image_from_cutout[:, :2])))
    if scale < 0.75:
        size = (max(2, round(rgba.shape[1] * scale)), max(2, round(rgba.shape[0] * scale)))
        sx, sy = rgba.shape[1] / size[0], rgba.shape[0] / size[1]
        shrunk = np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2]])
        rgba, image_from_cutout = _premultiplied(rgba, size), compose(image_from_cutout, shrunk)
    else:
        rgba = _premultiplied(rgba)
    height, width = rgba.shape[:2]
    corners = transform(image_from_cutout, np.array([[-1, -1], [width, -1], [-1, height], [width, height]], np.float32))
    left, top = np.maximum(np.floor(corners.min(0)).astype(int), 0)
    right, bottom = np.minimum(np.ceil(corners.max(0)).astype(int) + 1, (image.shape[1], image.shape[0]))
    if left >= right or top >= bottom:
        return
    box = ImageFrame(bottom - top, right - left).grid() + np.array([left, top], np.float32)
    layer = _sample(rgba, transform(invert(image_from_cutout), box), cv2.INTER_LINEAR)
    part = image[top:bottom, left:right]
    part[:] = np.clip(layer[..., :3] + part * (1 - layer[..., 3:]) + 0.5, 0, 255).astype(np.uint8)


def _premultiplied(rgba: np.ndarray, size: tuple[int, int] | None = None) -> np.ndarray:
    """Color times alpha, so that no color from outside the outline bleeds in: float32, alpha in 0..1."""
    alpha = rgba[..., 3:].astype(np.float32) / 255
    image = np.concatenate([rgba[..., :3] * alpha, alpha], -1)
    return image if size is None else cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def random_objects(
    count: int,
    draw_cutout: Callable[[], np.ndarray],
    warp: Callable[[np.ndarray], np.ndarray],
    frame: ImageFrame,
    rng: np.random.Generator,
) -> list[MovingObject]:
    """`count` objects of random cases; those of case C move against the background, which carries them along."""
    objects = []
    for _ in range(count):
        rgba, case = draw_cutout(), rng.choice(["A", "B", "C"], p=[0.2, 0.3, 0.5])
        center = rng.uniform(0, (frame.width, frame.height))
        wanted = rng.uniform(0.15, 0.5) * 2 * frame.radius / max(rgba.shape[:2])
        stands = _placed(rgba, center, _turn(rng.uniform(-30, 30), wanted, rng.uniform(-0.1, 0.1)))
        if case == "B":
            objects.append(MovingObject(rgba, None, stands))
            continue
        if case == "A":
            objects.append(MovingObject(rgba, stands, None))
            continue
        own = _turn(rng.uniform(-30, 30), math.exp(rng.uniform(-0.35, 0.35)), rng.uniform(-0.15, 0.15))
        linear = own @ jacobian(warp, center.astype(np.float32)) @ stands[:, :2]
        offset = rng.normal(0, 0.25 * frame.radius, 2)
        moved = warp(center[None].astype(np.float32))[0] + offset
        objects.append(MovingObject(rgba, stands, _placed(rgba, moved, linear)))
    return objects


def _turn(degrees: float, scale: float, shear: float) -> np.ndarray:
    c, s = scale * math.cos(math.radians(degrees)), scale * math.sin(math.radians(degrees))
    return np.array([[c, -s], [s, c]]) @ np.array([[1, shear], [0, 1]])


def _placed(rgba: np.ndarray, center: np.ndarray, linear: np.ndarray) -> np.ndarray:
    middle = np.array([(rgba.shape[1] - 1) / 2, (rgba.shape[0] - 1) / 2])
    return np.column_stack([linear, center - linear @ middle])


def random_cutout(photo: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A smooth blob or a polygon cut from a photograph, for folders without cut-outs: (h, w, 4) uint8."""
    side = min(*photo.shape[:2], int(rng.integers(80, 177)))
    top, left = rng.integers(0, photo.shape[0] - side + 1), rng.integers(0, photo.shape[1] - side + 1)
    if rng.random() < 0.5:
        corners = int(rng.integers(4, 9))
        angles = (np.arange(corners) + rng.uniform(-0.4, 0.4, corners)) * 2 * np.pi / corners
        radii = rng.uniform(0.5, 1, len(angles))
    else:
        angles = np.linspace(0, 2 * np.pi, 64, endpoint=False)
        waves = np.arange(1, 6)
        phases, heights = rng.uniform(0, 2 * np.pi, 5), rng.normal(0, 1, 5) / (1 + waves)
        radii = 1 + (heights * np.cos(angles[:, None] * waves + phases)).sum(1) * 0.6
        radii = np.clip(radii / radii.max(), 0.2, 1)
    outline = side / 2 + (side / 2 - 1) * radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], -1)
    alpha = np.zeros((side, side), np.uint8)
    cv2.fillPoly(alpha, [outline.round().astype(np.int32)], 255)
    return np.dstack([photo[top : top + side, left : left + side], alpha])


def transform(affine: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A (2, 3) affine map of (..., 2) points, float32."""
    flat = np.ascontiguousarray(points, np.float32).reshape(-1, 1, 2)
    return cv2.transform(flat, affine).reshape(points.shape) if flat.size else np.zeros(points.shape, np.float32)


def compose(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """x -> outer(inner(x)), (2, 3)."""
    return np.column_stack([outer[:, :2] @ inner[:, :2], outer[:, :2] @ inner[:, 2] + outer[:, 2]])


def invert(affine: np.ndarray) -> np.ndarray:
    """The inverse of a (2, 3) affine map."""
    linear = np.linalg.inv(affine[:, :2])
    return np.column_stack([linear, -linear @ affine[:, 2]])


def _sample(image: np.ndarray, points: np.ndarray, interpolation: int) -> np.ndarray:
    return cv2.remap(image, points, None, interpolation, borderMode=cv2.BORDER_CONSTANT, borderValue=0)
