"""Random dense maps from reference to query (Sec. 3.5, appendix B): homography, affine, thin-plate spline, mixtures.

A warp is a function, evaluated exactly at any point, so perturbations compose with it without resampling a flow field.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import cv2
import numpy as np

from pdc_sfm.settings import require

WarpKind = Literal["homography", "affine", "tps", "mixed"]
KINDS: tuple[WarpKind, ...] = ("homography", "affine", "tps", "mixed")


@dataclass(frozen=True)
class WarpSettings:
    """How the views of a pair differ. Shares are relative, angles in degrees; zoom is the ratio of the two scales."""

    homography: float = 0.5  # share of pairs related by a homography
    affine: float = 0.1  # share by an affine map
    tps: float = 0.15  # share by a thin-plate spline
    mixed: float = 0.25  # share by a homography and a spline
    moderate: float = 0.6  # share with small rotations and zooms, as between neighboring views
    rotated: float = 0.2  # share with any rotation up to `max_rotation`
    strong: float = 0.2  # share with strong zoom and perspective
    upended: float = 0.0  # share with any rotation at all
    moderate_rotation: float = 40.0  # degrees, of moderate pairs
    max_rotation: float = 180.0  # degrees, of rotated pairs and some strong ones
    moderate_zoom: float = 2.0  # ratio of the two scales, of moderate pairs
    max_zoom: float = 3.0  # ratio of the two scales, of strong pairs
    moderate_tilt: float = 40.0  # degrees out of the image plane, of moderate pairs
    max_tilt: float = 60.0  # degrees, of strong pairs
    max_shift: float = 0.4  # of half the shorter side
    max_bend: float = 0.12  # standard deviation of the spline's control points, in halves of the shorter side
    min_in_view: float = 0.1  # share of the reference's points that must land in the query

    def __post_init__(self) -> None:
        for name in ("homography", "affine", "tps", "mixed", "moderate", "rotated", "strong", "upended"):
            require(getattr(self, name) >= 0, f"warp.{name}={getattr(self, name)}: a share is at least 0")
        kinds = self.homography + self.affine + self.tps + self.mixed
        modes = self.moderate + self.rotated + self.strong + self.upended
        require(kinds > 0, "warp: one of homography, affine, tps, mixed needs a share above 0")
        require(modes > 0, "warp: one of moderate, rotated, strong, upended needs a share above 0")
        for name in ("moderate_rotation", "max_rotation"):
            require(0 <= getattr(self, name) <= 180, f"warp.{name} must lie in 0..180 degrees")
        for name in ("moderate_zoom", "max_zoom"):
            require(1 <= getattr(self, name) <= 6, f"warp.{name} must lie in 1..6")
        for name in ("moderate_tilt", "max_tilt"):
            require(0 <= getattr(self, name) <= 75, f"warp.{name} must lie in 0..75 degrees")
        require(0 <= self.max_shift <= 1, "warp.max_shift must lie in 0..1")
        require(0 <= self.max_bend <= 0.3, "warp.max_bend must lie in 0..0.3")
        require(0 <= self.min_in_view <= 0.5, "warp.min_in_view must lie in 0..0.5")


@dataclass(frozen=True)
class ImageFrame:
    """An image's center and half its shorter side: the unit in which warps are drawn."""

    height: int
    width: int

    @property
    def center(self) -> tuple[float, float]:
        return (self.width - 1) / 2, (self.height - 1) / 2

    @property
    def radius(self) -> float:
        return min(self.height, self.width) / 2

    def pixels_from_unit(self) -> np.ndarray:
        """(3, 3): centerd units to pixel indices."""
        (cx, cy), r = self.center, self.radius
        return np.array([[r, 0, cx], [0, r, cy], [0, 0, 1.0]])

    def grid(self) -> np.ndarray:
        """(H, W, 2) float32 pixel indices (x, y)."""
        x, y = np.arange(self.width, dtype=np.float32), np.arange(self.height, dtype=np.float32)
        return np.stack(np.meshgrid(x, y), -1)

    def coarse_grid(self, n: int = 17) -> np.ndarray:
        """(n, n, 2) float32 points from corner to corner."""
        x, y = np.linspace(0, self.width - 1, n), np.linspace(0, self.height - 1, n)
        return np.stack(np.meshgrid(x, y), -1).astype(np.float32)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(..., 2) -> (...) bool: between the centers of the outermost pixels."""
        x, y = points[..., 0], points[..., 1]
        return (x >= 0) & (y >= 0) & (x <= self.width - 1) & (y <= self.height - 1)


@dataclass(frozen=True)
class Pose:
    """A plane seen by a moved camera: shift . rotation . zoom . tilt about the image center."""

    rotation: float = 0.0  # radians
    log_zoom: float = 0.0
    tilt: float = 0.0  # radians; negative: the inverse of a tilt
    direction: float = 0.0  # axis of the tilt, radians
    focal: float = math.inf  # in halves of the shorter side; infinite: an affine map
    shift: tuple[float, float] = (0.0, 0.0)

    def matrix(self, share: float = 1.0) -> np.ndarray:
        """(3, 3) in centerd units; a share in 0..1 goes that part of the way from the identity."""
        angle, zoom = share * self.rotation, math.exp(share * self.log_zoom)
        c, s = zoom * math.cos(angle), zoom * math.sin(angle)
        x, y = share * self.shift[0], share * self.shift[1]
        return np.array([[c, -s, x], [s, c, y], [0, 0, 1.0]]) @ self._tilted(share)

    def _tilted(self, share: float) -> np.ndarray:
        tilt = share * abs(self.tilt)
        c, s = math.cos(self.direction), math.sin(self.direction)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
        # determinant 1 at the center, so that zoom alone is the change of scale there
        root = math.sqrt(math.cos(tilt))
        lean = np.array([[1 / root, 0, 0], [0, root, 0], [0, math.sin(tilt) / self.focal, 1.0]])
        tilted = turn @ lean @ turn.T
        return np.linalg.inv(tilted) if self.tilt < 0 else tilted


class ThinPlate:
    """A thin-plate spline in centerd units: x -> x + a smooth displacement that interpolates random control points."""

    def __init__(self, frame: ImageFrame, controls: np.ndarray, displacements: np.ndarray) -> None:
        self.frame, self.controls = frame, controls  # (K, 2)
        k = len(controls)
        system = np.zeros((k + 3, k + 3))
        system[:k, :k] = _kernel(((controls[:, None] - controls[None]) ** 2).sum(-1))
        system[:k, k] = system[k, :k] = 1
        system[:k, k + 1 :], system[k + 1 :, :k] = controls, controls.T
        solved = np.linalg.solve(system, np.concatenate([displacements, np.zeros((3, 2))]))
        self.weights, self.affine = solved[:k], solved[k:]

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """(..., 2) pixel indices -> (..., 2) float32."""
        (cx, cy), radius = self.frame.center, self.frame.radius
        x = ((points[..., 0] - cx) / radius).astype(np.float32)
        y = ((points[..., 1] - cy) / radius).astype(np.float32)
        (ax, ay), (bx, by), (dx, dy) = self.affine.astype(np.float32)
        moved = [ax + bx * x + dx * y, ay + by * x + dy * y]
        for (kx, ky), weight in zip(self.controls.astype(np.float32), self.weights.astype(np.float32)):
            bump = _kernel((x - kx) ** 2 + (y - ky) ** 2)
            moved[0] += weight[0] * bump
            moved[1] += weight[1] * bump
        return np.stack([points[..., 0] + radius * moved[0], points[..., 1] + radius * moved[1]], -1).astype(np.float32)


def _kernel(squared: np.ndarray) -> np.ndarray:
    return squared * np.log(squared + np.float32(1e-12))


@dataclass(frozen=True)
class Warp:
    """Reference pixel -> query pixel: a spline (or none), then a homography."""

    homography: np.ndarray  # (3, 3), pixels
    spline: ThinPlate | None = None

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """(..., 2) float32 -> (..., 2) float32."""
        return project(self.homography, points if self.spline is None else self.spline(points))


def project(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A homography of (..., 2) float32 points."""
    flat = np.ascontiguousarray(points, np.float32).reshape(-1, 1, 2)
    return cv2.perspectiveTransform(flat, matrix).reshape(points.shape)


def jacobian(function: Callable[[np.ndarray], np.ndarray], point: np.ndarray, step: float = 0.5) -> np.ndarray:
    """(2, 2) derivative of a map at one point, by central differences of `step` pixels."""
    offsets = np.array([[step, 0], [-step, 0], [0, step], [0, -step]], np.float32)
    xp, xm, yp, ym = function((point + offsets).astype(np.float32)).astype(np.float64)
    return np.stack([xp - xm, yp - ym], -1) / (2 * step)


def random_pose(settings: WarpSettings, affine: bool, rng: np.random.Generator) -> Pose:
    """A pose from the mixture of moderate, rotated, strong and upended changes."""
    shares = np.array([settings.moderate, settings.rotated, settings.strong, settings.upended], float)
    mode = rng.choice(4, p=shares / shares.sum())
    any_rotation = mode in (1, 3) or (mode == 2 and rng.random() < 0.25)
    limit = settings.max_rotation if any_rotation else settings.moderate_rotation
    limit = 180.0 if mode == 3 else limit
    zoom_limit = settings.max_zoom if mode == 2 else settings.moderate_zoom
    tilt_limit = settings.max_tilt if mode == 2 else settings.moderate_tilt
    # moderate changes gather round none, so that the easy pairs of practice are not rare
    spread = (lambda: rng.uniform(-1, 1)) if mode else (lambda: np.clip(rng.normal(0, 0.5), -1, 1))
    zoom = math.log(zoom_limit) * (rng.uniform(0.3, 1) if mode == 2 else abs(spread()))
    return Pose(
        rotation=math.radians(limit) * (rng.uniform(-1, 1) if any_rotation else spread()),
        log_zoom=-zoom if rng.random() < 0.6 else zoom,  # below 0 the reference is the closer view
        tilt=math.radians(tilt_limit) * spread(),
        direction=rng.uniform(0, 2 * math.pi),
        focal=math.inf if affine else rng.uniform(1.5, 4.0),
        shift=(settings.max_shift * rng.uniform(-1, 1), settings.max_shift * rng.uniform(-1, 1)),
    )


def random_warp(frame: ImageFrame, settings: WarpSettings, rng: np.random.Generator) -> tuple[Warp, Pose]:
    """A warp that neither folds nor leaves the query, and the pose its homography was made from."""
    shares = np.array([getattr(settings, kind) for kind in KINDS], float)
    kind = KINDS[rng.choice(len(KINDS), p=shares / shares.sum())]
    pose = random_pose(settings, kind == "affine", rng)
    if kind == "tps":  # bent, with the milder half of the change of view
        pose = replace(pose, focal=math.inf, tilt=0.0)
    spline = None
    if kind in ("tps", "mixed"):
        controls = _control_points(frame, int(rng.integers(3, 5)))
        displacements = rng.normal(0, settings.max_bend * rng.uniform(0.2, 1), controls.shape)
    for _ in range(20):
        if kind in ("tps", "mixed"):
            spline = ThinPlate(frame, controls, displacements)
            displacements = 0.8 * displacements
        warp = Warp(in_pixels(frame, pose.matrix()), spline)
        if _acceptable(warp, frame, settings, pose):
            return warp, pose
        # rotation and zoom are kept, so that their shares are as set; what made the warp degenerate is eased
        pose = replace(pose, tilt=0.8 * pose.tilt, shift=(0.8 * pose.shift[0], 0.8 * pose.shift[1]))
    pose = replace(pose, tilt=0.0, shift=(0.0, 0.0))
    return Warp(in_pixels(frame, pose.matrix())), pose


def in_pixels(frame: ImageFrame, matrix: np.ndarray) -> np.ndarray:
    """A homography of centerd units as one of pixel indices."""
    outer = frame.pixels_from_unit()
    return outer @ matrix @ np.linalg.inv(outer)


def _control_points(frame: ImageFrame, n: int) -> np.ndarray:
    right, low = frame.width / 2 / frame.radius, frame.height / 2 / frame.radius
    return np.stack(np.meshgrid(np.linspace(-right, right, n), np.linspace(-low, low, n)), -1).reshape(-1, 2)


def _acceptable(warp: Warp, frame: ImageFrame, settings: WarpSettings, pose: Pose) -> bool:
    points = frame.coarse_grid()
    bent = points if warp.spline is None else warp.spline(points)
    for matrix, where in ((warp.homography, bent), (np.linalg.inv(warp.homography), points)):
        matrix = matrix / (matrix[2] @ np.array([*frame.center, 1.0]))
        depth = where @ matrix[2, :2] + matrix[2, 2]
        if depth.min() < 0.35 or depth.max() > 3:  # horizon in or near the image
            return False
    landed = warp(points)
    # area of each cell after the warp, over its area before: above 0 everywhere means no fold
    right, down = np.diff(landed, axis=1)[:-1], np.diff(landed, axis=0)[:, :-1]
    cell = (points[0, 1, 0] - points[0, 0, 0]) * (points[1, 0, 1] - points[0, 0, 1])
    area = (right[..., 0] * down[..., 1] - right[..., 1] * down[..., 0]) / cell / math.exp(2 * pose.log_zoom)
    if area.min() < 0.12 or area.max() > 8:
        return False
    seen = frame.contains(landed)
    overlap = max(float(seen.mean()), float((area * seen[:-1, :-1]).mean()) * math.exp(2 * pose.log_zoom))
    return float(seen.mean()) >= settings.min_in_view and overlap >= 0.5
