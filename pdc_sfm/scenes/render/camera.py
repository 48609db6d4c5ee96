"""Pinhole cameras. Intrinsics follow COLMAP: continuous coordinates, the image's top-left corner is (0, 0)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdc_sfm.pixels import from_colmap


@dataclass(frozen=True)
class Camera:
    """x ~ K (R X + t): camera-from-world pose, square pixels, principal point in the middle."""

    width: int
    height: int
    focal: float  # pixels
    cam_from_world: np.ndarray  # (3, 4)

    @classmethod
    def looking(
        cls, eye: np.ndarray, target: np.ndarray, size: tuple[int, int], focal: float, roll: float = 0.0
    ) -> Camera:
        """A camera at `eye` looking at `target`, upright but for a roll in radians."""
        forward = np.asarray(target, float) - eye
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        down = np.cross(forward, right)
        c, s = np.cos(roll), np.sin(roll)
        rotation = np.stack([c * right + s * down, c * down - s * right, forward])
        return cls(size[0], size[1], float(focal), np.concatenate([rotation, -(rotation @ eye)[:, None]], 1))

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.height

    @property
    def matrix(self) -> np.ndarray:
        """K (3, 3), COLMAP coordinates."""
        return np.array([[self.focal, 0, self.width / 2], [0, self.focal, self.height / 2], [0, 0, 1.0]])

    @property
    def center(self) -> np.ndarray:
        return -self.cam_from_world[:, :3].T @ self.cam_from_world[:, 3]

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """World (..., 3) -> pixel indices (..., 2) and depth (...). Pixels mean nothing where depth is not positive."""
        local = points @ self.cam_from_world[:, :3].T + self.cam_from_world[:, 3]
        depth = local[..., 2]
        safe = np.where(depth > 0, depth, 1.0)[..., None]
        return from_colmap(local[..., :2] / safe * self.focal + np.array([self.width / 2, self.height / 2])), depth

    def lift(self, pixels: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Pixel indices (..., 2) and depth (...) -> world (..., 3)."""
        xy = (np.asarray(pixels, float) + 0.5 - np.array([self.width / 2, self.height / 2])) / self.focal
        local = np.concatenate([xy, np.ones((*xy.shape[:-1], 1))], -1) * np.asarray(depth, float)[..., None]
        return (local - self.cam_from_world[:, 3]) @ self.cam_from_world[:, :3]

    def pixel_grid(self) -> np.ndarray:
        """Indices of all pixels, (H, W, 2) float64."""
        return np.stack(np.meshgrid(np.arange(self.width, dtype=float), np.arange(self.height, dtype=float)), -1)
