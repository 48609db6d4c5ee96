"""SIFT (Lowe 2004) by OpenCV: keypoints, RootSIFT descriptors, mutual nearest neighbors with the ratio test."""

from __future__ import annotations

from typing import Any

import numpy as np

RATIO = 0.8  # of the nearest to the second distance (Lowe 2004, Sec. 7.1)
MOST_KEYPOINTS = 8192  # COLMAP's default
LEAST = 2  # keypoints an image must have


Description = tuple[np.ndarray, np.ndarray]  # points (N, 2) and unit descriptors (N, 128) of an image


def sift_matches(image0: np.ndarray, image1: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matches of two RGB images, (H, W, 3) uint8: points (N, 2) of both, scores (N,) that fall with the ratio to the second."""
    return match_descriptions(describe(image0), describe(image1))


def match_descriptions(image0: Description, image1: Description) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `sift_matches`, of images described before."""
    (points0, words0), (points1, words1) = image0, image1
    if min(len(points0), len(points1)) < LEAST:
        return points0[:0], points1[:0], np.zeros(0)
    likeness = words0 @ words1.T  # descriptors have length 1: the distance is the root of 2 - 2 likeness
    rows = np.arange(len(points0))
    best, back = likeness.argmax(1), likeness.argmax(0)
    first = likeness[rows, best]
    likeness[rows, best] = -1
    nearest, second = (np.sqrt(np.maximum(2 - 2 * values, 0)) for values in (first, likeness.max(1)))
    ratio = nearest / np.maximum(second, 1e-9)
    kept = (ratio < RATIO) & (back[best] == rows)
    return points0[kept], points1[best[kept]], 1 - ratio[kept]


def describe(image: np.ndarray, most: int = MOST_KEYPOINTS) -> Description:
    """Keypoints and RootSIFT descriptors of an RGB image, (H, W, 3) uint8."""
    import cv2

    found, words = _sift(most).detectAndCompute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None)
    if words is None:
        return np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32)
    points = np.array([point.pt for point in found], np.float32).reshape(-1, 2)
    return points, np.sqrt(words / np.maximum(words.sum(1, keepdims=True), 1e-9))


def detect(image: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, 2) and contrasts (N,) of an RGB image, (H, W, 3) uint8, best first; each place once."""
    import cv2

    found = _sift(0).detect(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None)
    points = np.array([point.pt for point in found], np.float32).reshape(-1, 2)
    scores = np.array([point.response for point in found], np.float32)
    _, first = np.unique(points, axis=0, return_index=True)  # one place may come with several orientations
    best = first[np.lexsort((first, -scores[first]))][:most]
    return points[best], scores[best]


def _sift(most: int) -> Any:
    import cv2

    # without the precise upscaling every keypoint of OpenCV is shifted by a quarter of a pixel
    return cv2.SIFT_create(nfeatures=most, enable_precise_upscale=True)
