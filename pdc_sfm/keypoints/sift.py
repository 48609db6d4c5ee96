"""SIFT keypoints (Lowe 2004) by OpenCV: they need no weights, so they are always there."""

from __future__ import annotations

import numpy as np

from pdc_sfm.keypoints.types import Keypoints


def detect(image: np.ndarray, *, max_keypoints: int) -> Keypoints:
    """Keypoints and contrast scores of an RGB (H, W, 3) uint8 image, best first; each place once."""
    import cv2

    height, width = image.shape[:2]
    # without the precise upscaling every keypoint of OpenCV is shifted by a quarter of a pixel
    sift = cv2.SIFT_create(nfeatures=0, enable_precise_upscale=True)
    found = sift.detect(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None)
    xy = np.array([point.pt for point in found], np.float32).reshape(-1, 2)
    scores = np.array([point.response for point in found], np.float32)
    _, first = np.unique(xy, axis=0, return_index=True)  # one place may come with several orientations
    best = first[np.lexsort((first, -scores[first]))][:max_keypoints]
    return Keypoints(xy[best], scores[best], (width, height))
