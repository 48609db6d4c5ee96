"""How far estimated cameras are from the true ones. A pose is `cam_from_world`, a (3, 4) matrix [R | t]."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from pdc_sfm.colmap.georeference.similarity import Similarity

# Position (metres) and rotation (degrees) within which a query counts as localized (visuallocalization.net).
RECALL_THRESHOLDS = ((0.25, 2.0), (0.5, 5.0), (5.0, 10.0))


def camera_center(cam_from_world: np.ndarray) -> np.ndarray:
    """(..., 3, 4) poses -> (..., 3) positions in the world."""
    rotation, translation = cam_from_world[..., :3], cam_from_world[..., 3]
    return -np.einsum("...ji,...j->...i", rotation, translation)


def rotation_angle(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Degrees between rotations (..., 3, 3). Exact for small angles too: the chord, not the arc cosine of the trace."""
    chord = np.linalg.norm(first - second, axis=(-2, -1)) / (2.0 * np.sqrt(2.0))  # = sin(angle / 2)
    return np.degrees(2.0 * np.arcsin(np.clip(chord, 0.0, 1.0)))


def vector_angle(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Degrees between directions (..., 3), in [0, 180]."""
    first = first / np.linalg.norm(first, axis=-1, keepdims=True)
    second = second / np.linalg.norm(second, axis=-1, keepdims=True)
    difference, total = (np.linalg.norm(v, axis=-1) for v in (first - second, first + second))
    return np.degrees(2.0 * np.arctan2(difference, total))


def pose_error(estimated: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Distance between the two positions (world units) and angle between the two rotations (degrees)."""
    distance = np.linalg.norm(camera_center(estimated) - camera_center(true))
    return float(distance), float(rotation_angle(estimated[:, :3], true[:, :3]))


def relative_pose_error(estimated: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Degrees between rotations and between translation directions of two relative poses (whose scale is unknown).

    A camera that only turned moved in no direction: its rotation alone is judged.
    """
    angle = rotation_angle(estimated[:, :3], true[:, :3])
    moved = np.linalg.norm(true[:, 3]) > 0
    return float(angle), float(vector_angle(estimated[:, 3], true[:, 3])) if moved else 0.0


def localization_recall(
    estimated: Mapping[str, np.ndarray],
    true: Mapping[str, np.ndarray],
    thresholds: Sequence[tuple[float, float]] = RECALL_THRESHOLDS,
) -> tuple[float, ...]:
    """Fraction of all true queries localized within each (distance, degrees). A query without an estimate is a miss."""
    if not true:
        raise ValueError("recall of no queries is undefined")
    errors = np.array([pose_error(estimated[name], pose) for name, pose in true.items() if name in estimated])
    errors = errors.reshape(-1, 2)
    return tuple(float(np.sum((errors <= limits).all(axis=1))) / len(true) for limits in thresholds)


def align(source: np.ndarray, target: np.ndarray) -> Similarity:
    """The similarity with the least squared distance from (N, 3) source to target points (Umeyama 1991)."""
    if len(source) < 3:
        raise ValueError(f"a similarity needs 3 points, not {len(source)}")
    source_mean, target_mean = source.mean(axis=0), target.mean(axis=0)
    a, b = source - source_mean, target - target_mean
    u, singular, vt = np.linalg.svd(b.T @ a / len(a))
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = (u * sign) @ vt
    scale = float((singular * sign).sum() / a.var(axis=0).sum())
    return Similarity(scale, rotation, target_mean - scale * rotation @ source_mean)


@dataclasses.dataclass(frozen=True)
class ReconstructionErrors:
    """Errors of the cameras of a reconstruction, after it was laid over the true ones."""

    names: tuple[str, ...]
    degrees: np.ndarray  # (N,)
    distances: np.ndarray  # (N,) in units of the true world
    extent: float  # largest distance between two true cameras

    @property
    def percents(self) -> np.ndarray:
        """(N,) distances as per cent of the cameras' extent."""
        return 100.0 * self.distances / self.extent


def reconstruction_errors(estimated: Mapping[str, np.ndarray], true: Mapping[str, np.ndarray]) -> ReconstructionErrors:
    """Lay the estimated cameras over the true ones by a similarity of their centers, then measure each."""
    names = tuple(name for name in true if name in estimated)
    poses, truth = (np.stack([source[name] for name in names]) for source in (estimated, true))
    centers, true_centers = camera_center(poses), camera_center(truth)
    similarity = align(centers, true_centers)
    distances = np.linalg.norm(similarity(centers) - true_centers, axis=1)
    degrees = rotation_angle(poses[..., :3] @ similarity.rotation.T, truth[..., :3])
    extent = np.linalg.norm(true_centers[:, None] - true_centers[None], axis=-1).max()
    return ReconstructionErrors(names, degrees, distances, float(extent))
