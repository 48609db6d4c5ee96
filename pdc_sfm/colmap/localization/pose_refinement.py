"""Refines a pose on many 2D-3D correspondences, each weighted by its confidence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pycolmap

UNKNOWNS = 6  # of a pose


def inverse_variance(confidence: np.ndarray) -> np.ndarray:
    """What probabilities (C,) of an error below a pixel say of the errors: Eq. 7 of one component, solved for 1 / sigma^2."""
    return np.log1p(-np.sqrt(np.clip(confidence, 1e-4, 0.999))) ** 2 / 2


def refine_pose(
    cam_from_world: pycolmap.Rigid3d,
    rays: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    focal_length: float,
    loss_scale: float,
    iterations: int = 30,
) -> pycolmap.Rigid3d:
    """Least squares of weighted reprojection errors under a Cauchy loss (scale in pixels), by Levenberg-Marquardt.

    `rays` (C, 2) are normalized coordinates, `points` (C, 3) in the world, `weights` (C,) inverse variances.
    """

    def residuals_at(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
        return _residuals(rotation, translation, rays, points, focal_length)

    def jacobian_at(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
        return _jacobian(rotation, translation, points, focal_length)

    return _minimize(cam_from_world, residuals_at, jacobian_at, weights, loss_scale, iterations)


def refine_rig_pose(
    rig_from_world: pycolmap.Rigid3d,
    cams_from_rig: tuple[np.ndarray, np.ndarray],
    rays: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    focal_lengths: np.ndarray,
    loss_scale: float,
    iterations: int = 30,
) -> pycolmap.Rigid3d:
    """As `refine_pose`, of cameras that are fixed to each other: rotation (C, 3, 3), translation (C, 3) and focal length (C,)
    are those of each correspondence's camera in the rig."""
    turns, shifts = cams_from_rig

    def local_at(rotation: np.ndarray, translation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        in_rig = points @ rotation.T + translation
        return in_rig, np.einsum("cij,cj->ci", turns, in_rig) + shifts

    def residuals_at(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
        local = local_at(rotation, translation)[1]
        depth = np.where(local[:, 2:] > 1e-9, local[:, 2:], 1e-9)
        return focal_lengths[:, None] * (local[:, :2] / depth - rays)

    def jacobian_at(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
        in_rig, local = local_at(rotation, translation)
        x, y, z = local.T
        z = np.where(z > 1e-9, z, 1e-9)
        zero = np.zeros_like(x)
        projected = np.stack([1 / z, zero, -x / z**2, zero, 1 / z, -y / z**2], axis=1).reshape(-1, 2, 3)
        by_shift = projected @ turns  # (C, 2, 3)
        a, b, c = in_rig.T
        crossed = np.stack([zero, c, -b, -c, zero, a, b, -a, zero], axis=1).reshape(
            -1, 3, 3
        )  # turn x point, by the turn
        return focal_lengths[:, None, None] * np.concatenate([by_shift @ crossed, by_shift], axis=2)

    return _minimize(rig_from_world, residuals_at, jacobian_at, weights, loss_scale, iterations)


def _minimize(
    start: pycolmap.Rigid3d,
    residuals_at: Callable[[np.ndarray, np.ndarray], np.ndarray],
    jacobian_at: Callable[[np.ndarray, np.ndarray], np.ndarray],
    weights: np.ndarray,
    loss_scale: float,
    iterations: int,
) -> pycolmap.Rigid3d:
    """Levenberg-Marquardt over a small turn and shift of the local frame; residuals (C, 2), their derivatives (C, 2, 6)."""
    rotation, translation = start.rotation.matrix(), np.asarray(start.translation)
    damping = 1e-4
    residuals = residuals_at(rotation, translation)
    cost = _cost(residuals, weights, loss_scale)
    for _ in range(iterations):
        robust = weights / (1.0 + (residuals**2).sum(axis=1) / loss_scale**2)
        jacobian = jacobian_at(rotation, translation)
        weighted = jacobian * robust[:, None, None]
        hessian = np.einsum("cij,cik->jk", weighted, jacobian)
        gradient = np.einsum("cij,ci->j", weighted, residuals)
        step = -np.linalg.solve(hessian + damping * np.diag(np.diag(hessian) + 1e-12), gradient)
        turn = _rotation(step[:3])
        trial = turn @ rotation, turn @ translation + step[3:]
        trial_residuals = residuals_at(*trial)
        trial_cost = _cost(trial_residuals, weights, loss_scale)
        if trial_cost < cost:
            done = cost - trial_cost <= 1e-10 * cost
            (rotation, translation), residuals, cost = trial, trial_residuals, trial_cost
            damping = max(damping / 10, 1e-12)
            if done:
                break
        else:
            damping *= 10
            if damping > 1e6:
                break
    return pycolmap.Rigid3d(pycolmap.Rotation3d(rotation), translation)


def pose_covariance(
    cam_from_world: pycolmap.Rigid3d,
    rays: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    focal_length: float,
    loss_scale: float,
    groups: np.ndarray,
) -> np.ndarray:
    """(6, 6) covariance of a refined pose, for a small turn and shift of the camera frame, as the residuals tell it.

    Correspondences of one of the `groups` (C,) err together: neighbors in a dense match share their error, so that the inverse
    of the normal equations would be far too small. The "sandwich" of White (1980) with clusters asks for no variances, but
    for many groups. What few groups cannot tell comes from one observation a group, with the median residual as its error.
    """
    rotation, translation = cam_from_world.rotation.matrix(), np.asarray(cam_from_world.translation)
    residuals = _residuals(rotation, translation, rays, points, focal_length)
    jacobian = _jacobian(rotation, translation, points, focal_length)  # (C, 2, 6)
    robust = weights / (1.0 + (residuals**2).sum(axis=1) / loss_scale**2)
    bread = _inverse(np.einsum("cij,c,cik->jk", jacobian, robust, jacobian))
    pulls = np.einsum("cij,c,ci->cj", jacobian, robust, residuals)  # (C, 6)
    sizes = np.bincount(groups)
    pulls = np.stack([np.bincount(groups, pull) for pull in pulls.T], axis=1)
    sandwich = bread @ (pulls.T @ pulls) @ bread * (len(sizes) / max(len(sizes) - UNKNOWNS, 1))
    single = _inverse(np.einsum("cij,c,cik->jk", jacobian, 1 / sizes[groups], jacobian))
    single *= np.median((residuals**2).sum(axis=1))
    return sandwich + min(1.0, UNKNOWNS / len(sizes)) * single


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """Of a matrix that may be singular up to rounding: what is not known at all has a large variance, not none."""
    return np.linalg.inv(matrix + 1e-12 * np.diag(np.diag(matrix) + 1e-12))


def _residuals(
    rotation: np.ndarray, translation: np.ndarray, rays: np.ndarray, points: np.ndarray, focal_length: float
) -> np.ndarray:
    """(C, 2) pixels. Points behind the camera are far off, never right."""
    local = points @ rotation.T + translation
    depth = np.where(local[:, 2:] > 1e-9, local[:, 2:], 1e-9)
    return focal_length * (local[:, :2] / depth - rays)


def _cost(residuals: np.ndarray, weights: np.ndarray, loss_scale: float) -> float:
    return float((weights * np.log1p((residuals**2).sum(axis=1) / loss_scale**2)).sum())


def _jacobian(rotation: np.ndarray, translation: np.ndarray, points: np.ndarray, focal_length: float) -> np.ndarray:
    """(C, 2, 6) derivatives by a small turn and shift of the camera frame."""
    x, y, z = (points @ rotation.T + translation).T
    z = np.where(z > 1e-9, z, 1e-9)
    zero = np.zeros_like(x)
    turn = np.stack([-x * y / z**2, 1 + x**2 / z**2, -y / z, -1 - y**2 / z**2, x * y / z**2, x / z], axis=1)
    shift = np.stack([1 / z, zero, -x / z**2, zero, 1 / z, -y / z**2], axis=1)
    return focal_length * np.concatenate([turn.reshape(-1, 2, 3), shift.reshape(-1, 2, 3)], axis=2)


def _rotation(vector: np.ndarray) -> np.ndarray:
    """Rodrigues' formula."""
    angle = np.linalg.norm(vector)
    if angle < 1e-15:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
