"""What the images of a model see in common, as plain arrays: correspondences for training and for measuring."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.point_lookup import NO_POINT, PointLookup
from pdc_sfm.errors import FormatError
from pdc_sfm.pixels import Size, from_colmap


@dataclasses.dataclass(frozen=True)
class ModelViews:
    """The registered images of a model and, for each, the points it sees."""

    names: tuple[str, ...]
    sizes: tuple[Size, ...]  # (width, height) of the cameras
    point_ids: tuple[np.ndarray, ...]  # (N,) each, rising
    positions: tuple[np.ndarray, ...]  # (N, 2) each, pixel indices

    def shared(self, first: int, second: int) -> np.ndarray:
        """Points that both images see: (N, 4) float32, x and y in the first, then in the second."""
        _, a, b = np.intersect1d(self.point_ids[first], self.point_ids[second], assume_unique=True, return_indices=True)
        return np.hstack([self.positions[first][a], self.positions[second][b]]).astype(np.float32)

    def overlapping(self, min_overlap: float, min_points: int = 1) -> np.ndarray:
        """(P, 2) ordered pairs whose second image sees at least this share of the points of the first."""
        from scipy.sparse import csr_array

        points, column = np.unique(np.concatenate(self.point_ids), return_inverse=True)
        counts = np.array([len(ids) for ids in self.point_ids])
        start = np.concatenate([[0], np.cumsum(counts)])
        seen = csr_array((np.ones(len(column), np.int32), column.reshape(-1), start), (len(counts), len(points)))
        common = (seen @ seen.T).tocoo()
        keep = (common.row != common.col) & (common.data >= min_points)
        keep &= common.data >= min_overlap * counts[common.row]
        pairs = np.stack([common.row[keep], common.col[keep]], 1)
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def read_views(path: Path | str, max_error: float = 2.0) -> ModelViews:
    """Read a model. Positions are the points' projections, which agree among images better than keypoints do.

    A point that projects farther than `max_error` pixels from its keypoint is left out of that image.
    """
    model = load_model(path)
    lookup = PointLookup(model)
    views = []
    for image_id in sorted(model.reg_image_ids(), key=lambda i: model.image(i).name):
        image = model.image(image_id)
        camera = model.camera(image.camera_id)
        ids = lookup.point_ids(image_id)
        shown = np.flatnonzero(ids != NO_POINT)
        ids = ids[shown]
        keypoints = np.array([image.points2D[i].xy for i in shown]).reshape(-1, 2)
        pose = image.cam_from_world().matrix()
        in_camera = lookup.xyz(ids) @ pose[:, :3].T + pose[:, 3]
        front = in_camera[:, 2] > 0
        projected = np.full((len(ids), 2), np.nan)
        if front.any():
            projected[front] = camera.img_from_cam(np.ascontiguousarray(in_camera[front]))
        good = np.linalg.norm(projected - keypoints, axis=1) <= max_error
        ids, first = np.unique(ids[good], return_index=True)
        size = (int(camera.width), int(camera.height))
        views.append((image.name, size, ids, from_colmap(projected[good][first])))
    if not views or not sum(len(view[2]) for view in views):
        raise FormatError(f"the model in {path} has no image that sees a point: nothing can be learned from it")
    return ModelViews(*(tuple(column) for column in zip(*views)))
