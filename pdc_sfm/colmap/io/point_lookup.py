"""The points of a model by id, and which of them the keypoints of its images show."""

from __future__ import annotations

import functools

import numpy as np
import pycolmap

from pdc_sfm.errors import FormatError

NO_POINT = -1


class PointLookup:
    """Points of a model by id, and the points that the keypoints of its images show."""

    def __init__(self, model: pycolmap.Reconstruction):
        self.model = model
        self._xyz = np.zeros((max(model.point3D_ids(), default=0) + 1, 3))
        for point_id, point in model.points3D.items():
            self._xyz[point_id] = point.xyz
        if not np.isfinite(self._xyz).all():
            raise FormatError("a point of the model has a place that is not a number: make the model again")
        self.point_ids = functools.lru_cache(1024)(self._point_ids)

    def xyz(self, point_ids: np.ndarray) -> np.ndarray:
        """(C,) ids -> (C, 3) positions."""
        return self._xyz[point_ids]

    def _point_ids(self, image_id: int) -> np.ndarray:
        """(N,) ids of the points that the keypoints of an image show, NO_POINT where they show none."""
        ids = np.array([p.point3D_id for p in self.model.image(image_id).points2D], np.uint64)
        return ids.astype(np.int64)  # COLMAP's mark for no point is 2^64 - 1, that is -1
