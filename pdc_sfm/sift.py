"""SIFT of OpenCV with Lowe's ratio test: RootSIFT descriptors, mutual nearest neighbours."""

from __future__ import annotations

import numpy as np

RATIO = 0.8
MOST_KEYPOINTS = 8192
LEAST = 2  # keypoints an image must have


def sift_matches(image0: np.ndarray, image1: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matches of two RGB images, (H, W, 3) uint8: points (N, 2) of both, scores (N,) that fall with the ratio to the second."""
    import cv2

    (points0, words0), (points1, words1) = (_describe(image) for image in (image0, image1))
    kept: list[tuple[int, int, float]] = []
    if min(len(points0), len(points1)) >= LEAST:
        matcher = cv2.BFMatcher(cv2.NORM_L2)
        forward, backward = matcher.knnMatch(words0, words1, k=2), matcher.match(words1, words0)
        back = {match.queryIdx: match.trainIdx for match in backward}
        kept = [
            (best.queryIdx, best.trainIdx, 1 - best.distance / max(second.distance, 1e-9))
            for best, second in forward
            if best.distance < RATIO * second.distance and back[best.trainIdx] == best.queryIdx
        ]
    index0, index1, scores = zip(*kept) if kept else ((), (), ())
    return points0[list(index0)], points1[list(index1)], np.array(scores, np.float64)


def _describe(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keypoints (N, 2) and RootSIFT descriptors (N, 128)."""
    import cv2

    # without the precise upscaling every keypoint of OpenCV is shifted by a quarter of a pixel
    sift = cv2.SIFT_create(nfeatures=MOST_KEYPOINTS, enable_precise_upscale=True)
    found, words = sift.detectAndCompute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None)
    if words is None:
        return np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32)
    points = np.array([point.pt for point in found], np.float32).reshape(-1, 2)
    return points, np.sqrt(words / np.maximum(words.sum(1, keepdims=True), 1e-9))
