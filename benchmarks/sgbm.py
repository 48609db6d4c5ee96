"""Depth by OpenCV's semi-global matching of rectified pairs: what else there is on a processor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from pdc_sfm.colmap.io.posed_views import PosedView
from pdc_sfm.images import read_image

MOST_DISPARITIES = 256  # that are tried, of those that the model's points have
SIDEWAYS = (
    30.0  # degrees between baseline and axes: with less the epipole is in the picture, and lines do not run parallel
)
BLOCK = 5  # pixels of a window; penalties are OpenCV's for it
LARGEST = 2.0  # sizes of the image: of what becomes of it when it is turned towards the baseline's side


def sideways(view: PosedView, other: PosedView) -> bool:
    """Whether the pair can be rectified."""
    baseline = other.center - view.center
    axes = (one.cam_from_world[2, :3] for one in (view, other))
    cosines = [abs(float(axis @ baseline)) / max(float(np.linalg.norm(baseline)), 1e-12) for axis in axes]
    return max(cosines) < np.cos(np.deg2rad(SIDEWAYS))


def sgbm(images: Path, view: PosedView, other: PosedView) -> np.ndarray:
    """Depth (h, w) of a view, 0 where there is none."""
    turn, baseline = _turn(view, other)
    focal = float(view.intrinsics[0, 0])
    width, height = view.size
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    own_from_pixel = turn @ view.cam_from_world[:, :3].T @ np.linalg.inv(view.intrinsics)
    seen = np.stack([x, y, np.ones_like(x)], -1) @ own_from_pixel.T
    if seen[..., 2].min() < 0.1:
        return np.zeros((height, width))
    at = seen[..., :2] / seen[..., 2:] * focal
    low, high = at.reshape(-1, 2).min(0), at.reshape(-1, 2).max(0)
    if (high - low > LARGEST * max(view.size)).any():
        return np.zeros((height, width))
    depth = (view.points - view.center) @ turn[2]
    nearest, farthest = np.quantile(depth[depth > 0], (0.005, 0.995))
    first = int(0.7 * focal * baseline / farthest)
    count = int(np.clip(np.ceil((1.5 * focal * baseline / nearest - first) / 16) * 16, 16, MOST_DISPARITIES))
    left = low[0] - first - count  # SGBM gives nothing where the largest disparity would lead out of the picture
    size = int(np.ceil(high[0] - left)) + 1, int(np.ceil(high[1] - low[1])) + 1
    pictures = [_turned(images, one, turn, focal, (left, low[1]), size) for one in (view, other)]
    matcher = cv2.StereoSGBM_create(
        minDisparity=first,
        numDisparities=count,
        blockSize=BLOCK,
        P1=8 * BLOCK**2,
        P2=32 * BLOCK**2,
        disp12MaxDiff=1,
        uniquenessRatio=10,
        speckleWindowSize=100,
        speckleRange=2,
        mode=cv2.STEREO_SGBM_MODE_HH,
    )
    disparity = matcher.compute(*pictures).astype(np.float32) / 16
    column, row = (axis.astype(np.float32) for axis in (at[..., 0] - left, at[..., 1] - low[1]))
    found = cv2.remap(disparity, column, row, cv2.INTER_NEAREST)
    known = found > max(first, 0.5)
    return np.where(known, focal * baseline / np.where(known, found, 1) / seen[..., 2], 0)


def agreeing(maps: np.ndarray) -> np.ndarray:
    """(h, w): the mean of those of (P, h, w) that agree with the one most agree with, if that is one more."""
    support = np.stack([((np.abs(maps - own) < 0.01 * own) & (own > 0)).sum(0) for own in maps])
    most = support.argmax(0)
    own = np.take_along_axis(maps, most[None], 0)[0]
    near = (np.abs(maps - own) < 0.01 * own) & (own > 0)
    return np.where(support.max(0) >= 2, (maps * near).sum(0) / np.maximum(near.sum(0), 1), 0)


def rectifiable(number: int, views: Sequence[PosedView], partners: Sequence[int], count: int) -> list[int]:
    """The first partners of a view with which it can be rectified."""
    return [other for other in partners if sideways(views[number], views[other])][:count]


def _turn(view: PosedView, other: PosedView) -> tuple[np.ndarray, float]:
    """(3, 3) rectified camera from world: x from the view to the other, which is then its right one; and the baseline."""
    between = other.center - view.center
    baseline = float(np.linalg.norm(between))
    x = between / baseline
    ahead = view.cam_from_world[2, :3] + other.cam_from_world[2, :3]
    z = ahead - (ahead @ x) * x
    z /= np.linalg.norm(z)
    return np.stack([x, np.cross(z, x), z]), baseline


def _turned(
    images: Path, view: PosedView, turn: np.ndarray, focal: float, corner: tuple[float, float], size: tuple[int, int]
) -> np.ndarray:
    """(h, w) uint8: a picture as its camera, turned, would see it."""
    gray = cv2.cvtColor(read_image(images / view.name), cv2.COLOR_RGB2GRAY)
    rectified_from_pixel = turn @ view.cam_from_world[:, :3].T @ np.linalg.inv(view.intrinsics)
    camera = np.array([[focal, 0, -corner[0]], [0, focal, -corner[1]], [0, 0, 1]])
    return cv2.warpPerspective(gray, camera @ rectified_from_pixel, size, flags=cv2.INTER_LINEAR)
