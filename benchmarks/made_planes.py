"""Pairs of a photograph and itself as a camera sees it that looks at the picture from the side, or turned and near."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from data import DATA, needed

from pdc_sfm.evaluation.datasets.pair_list import ListedPair
from pdc_sfm.synthetic.photographs import open_photographs

COUNT = 24  # pairs of a kind
SIZE, FOCAL = (640, 480), 600.0  # of the camera, pixels
FINER = 3  # times finer it is rendered than seen
NEARER = 1.2  # from the side a picture is as large as before at this distance
# degrees of tilt, ratios of distances, seed of the photographs and cameras
KINDS = {"sides": ((60.0, 75.0), (1.0, 3.0), 11), "zooms": ((0.0, 30.0), (1.5, 6.0), 12)}


def made_planes(kind: str, work: Path) -> list[ListedPair]:
    """Pairs of photographs that training leaves out, written to a folder unless they are there."""
    tilts, zooms, seed = KINDS[kind]
    photos = open_photographs(needed(DATA / "photos"), "validation")
    rng = np.random.default_rng(seed)
    work.mkdir(parents=True, exist_ok=True)
    pairs = []
    for number, index in enumerate(rng.permutation(len(photos))[:COUNT]):
        image = photos[int(index)]
        tilt, azimuth, turn = np.radians(rng.uniform(*tilts)), *rng.uniform(0, 2 * np.pi, 2)
        zoom = np.exp(rng.uniform(*np.log(zooms)))
        place = np.array(image.shape[1::-1]) * rng.uniform(0.35, 0.65, 2)
        distance = FOCAL * max(image.shape[:2]) / SIZE[0] / (zoom * NEARER if kind == "sides" else zoom)
        homography = _camera(tilt, azimuth, turn, distance, place)
        gain, offset, noise = rng.uniform(0.8, 1.2), rng.uniform(-10, 10), rng.normal(0, 3, (*SIZE[::-1], 3))
        first, second = (work / f"{kind}_{number:02}_{side}.png" for side in "ab")
        if not second.exists():
            cv2.imwrite(str(first), image[..., ::-1])
            seen = gain * _seen(image, homography)[..., ::-1] + offset + noise
            cv2.imwrite(str(second), seen.clip(0, 255).astype(np.uint8))
        name = f"tilt {np.degrees(tilt):.0f} turn {np.degrees(turn):.0f} zoom {zoom:.1f}"
        pairs.append(ListedPair("homography", name, first, second, homography=homography))
    return pairs


def _camera(tilt: float, azimuth: float, turn: float, distance: float, place: np.ndarray) -> np.ndarray:
    """The homography (3, 3) from pixels of a picture to those of a camera that looks at a place of it; in front is positive."""
    over, about = (_about(angle, 2) for angle in (turn, azimuth))
    rotation = over @ _about(tilt, 0) @ about
    intrinsics = np.array([[FOCAL, 0, (SIZE[0] - 1) / 2], [0, FOCAL, (SIZE[1] - 1) / 2], [0, 0, 1.0]])
    translation = [0, 0, distance] - rotation[:, :2] @ place
    homography = intrinsics @ np.column_stack((rotation[:, :2], translation))
    return homography / abs(homography[2, 2])


def _about(angle: float, axis: int) -> np.ndarray:
    vector = np.zeros(3)
    vector[axis] = angle
    return cv2.Rodrigues(vector)[0]


def _seen(image: np.ndarray, homography: np.ndarray) -> np.ndarray:
    finer = np.array([[FINER, 0, (FINER - 1) / 2], [0, FINER, (FINER - 1) / 2], [0, 0, 1.0]])
    size = FINER * SIZE[0], FINER * SIZE[1]
    beyond = (125, 120, 110)
    large = cv2.warpPerspective(image, finer @ homography, size, flags=cv2.INTER_CUBIC, borderValue=beyond)
    return cv2.resize(large, SIZE, interpolation=cv2.INTER_AREA).astype(float)
