"""The observations of a model as arrays, and small surface patches around its points."""

from __future__ import annotations

import dataclasses

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.point_lookup import NO_POINT, PointLookup

NEIGHBORS = 12  # points around a point that tell how the surface lies there
STEEPEST = 0.35  # cosine: surfaces seen more obliquely are taken to face the cameras, their direction is not known well


@dataclasses.dataclass(frozen=True)
class Observations:
    """Every keypoint that shows a point of the model."""

    xyz: np.ndarray  # (N, 3) points
    point: np.ndarray  # (O,) row of the observed point
    image_id: np.ndarray  # (O,)
    index: np.ndarray  # (O,) of the keypoint in its image
    places: np.ndarray  # (O, 2) COLMAP coordinates

    @staticmethod
    def of(model: pycolmap.Reconstruction) -> Observations:
        lookup, columns = PointLookup(model), []
        point_ids = np.array(sorted(model.point3D_ids()), np.int64)
        for image_id in sorted(model.reg_image_ids()):
            ids = lookup.point_ids(image_id)
            index = np.flatnonzero(ids != NO_POINT)
            points2D = model.image(image_id).points2D
            places = np.array([points2D[i].xy for i in index.tolist()]).reshape(-1, 2)
            columns.append((np.searchsorted(point_ids, ids[index]), np.full(len(index), image_id), index, places))
        return Observations(lookup.xyz(point_ids), *(np.concatenate(column) for column in zip(*columns)))


@dataclasses.dataclass(frozen=True)
class Surfaces:
    """The surface at each point: the observation that sees it best, and two steps along it of one pixel there."""

    best: np.ndarray  # (N,) row of an observation
    steps: np.ndarray  # (N, 2, 3) in the world: one pixel to the right, one pixel down


def surfaces(model: pycolmap.Reconstruction, seen: Observations, threads: int = 1) -> Surfaces:
    """Fit a plane to the points around each point; its best image looks along the mean of all directions."""
    image_ids, image = np.unique(seen.image_id, return_inverse=True)  # (I,), (O,) rows of it
    poses = np.stack([np.asarray(model.image(i).cam_from_world().matrix()) for i in image_ids.tolist()])  # (I, 3, 4)
    centers = np.stack([-pose[:, :3].T @ pose[:, 3] for pose in poses])
    focals = np.array([model.camera(model.image(i).camera_id).mean_focal_length() for i in image_ids.tolist()])
    rays = _unit(seen.xyz[seen.point] - centers[image])
    mean = np.stack([np.bincount(seen.point, rays[:, axis], len(seen.xyz)) for axis in range(3)], 1)
    mean = _unit(mean)
    central = (rays * mean[seen.point]).sum(1)
    order = np.lexsort((-central, seen.point))
    best = order[np.r_[True, np.diff(seen.point[order]) != 0]]
    of_best = image[best]
    rotations, focal = poses[of_best, :, :3], focals[of_best]
    ray = seen.xyz - centers[of_best]
    pixel = np.einsum("ni,ni->n", rotations[:, 2], ray) / focal  # its size at the depth of the point
    across = rotations[:, :2] * pixel[:, None, None]  # parallel to the image
    normal = _normals(seen.xyz, mean, threads)
    slide = np.einsum("nai,ni->na", across, normal) / np.einsum("ni,ni->n", ray, normal)[:, None]
    return Surfaces(best, across - slide[..., None] * ray[:, None])  # along the ray, back onto the plane


def _normals(xyz: np.ndarray, view: np.ndarray, threads: int) -> np.ndarray:
    """Normals (N, 3) of the planes through each point's neighbors; `view` where these are seen too obliquely."""
    from scipy.spatial import cKDTree

    around = xyz[cKDTree(xyz).query(xyz, min(NEIGHBORS, len(xyz)), workers=threads)[1]]
    around = around - around.mean(1, keepdims=True)
    normals = np.linalg.eigh(np.einsum("nki,nkj->nij", around, around))[1][:, :, 0]
    oblique = np.abs((normals * view).sum(1)) < STEEPEST
    return np.where(oblique[:, None], view, normals)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
