"""A network that needs no weights: it reads true positions out of specially colored images."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

from pdc_sfm.network import LevelOutput
from pdc_sfm.network.settings import NetworkSettings
from pdc_sfm.pixels import grid_points, transform

SCENE = 250  # the scene is a square of this side; red = x, green = y, blue = 255 marks the scene


def paint(scene_from_image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The picture that a camera takes of the scene: each pixel's color is its place there."""
    places = transform(grid_points(size, size), scene_from_image)
    seen = ((places >= 0) & (places <= SCENE)).all(-1)
    image = np.zeros((*places.shape[:2], 3), np.uint8)
    dither = np.random.default_rng(0).random((seen.sum(), 2))  # rounding that is right on average
    image[seen, :2] = np.floor(places[seen] + dither).astype(np.uint8)
    image[seen, 2] = 255
    return image


def fit_scene_from_pixels(image: np.ndarray) -> np.ndarray:
    """Direct linear transform over all pixels that show the scene."""
    y, x = (index[::3] for index in np.nonzero(image[..., 2] > 254.9))
    u, v = image[y, x, 0].astype(float), image[y, x, 1].astype(float)
    x, y, u, v = (2 * c / SCENE - 1 for c in (x.astype(float), y.astype(float), u, v))
    one, zero = np.ones_like(x), np.zeros_like(x)
    rows = np.concatenate(
        (
            np.stack((x, y, one, zero, zero, zero, -u * x, -u * y, -u), 1),
            np.stack((zero, zero, zero, x, y, one, -v * x, -v * y, -v), 1),
        )
    )
    normalize = np.array([[2 / SCENE, 0, -1], [0, 2 / SCENE, -1], [0, 0, 1]])
    homography = np.linalg.eigh(rows.T @ rows)[1][:, 0].reshape(3, 3)
    homography = np.linalg.inv(normalize) @ homography @ normalize
    depth = homography[2] @ [image.shape[1] / 2, image.shape[0] / 2, 1]
    return homography / depth


@dataclass(frozen=True)
class Seen:
    """A code that keeps the image."""

    images: tuple[np.ndarray, ...]
    high_size: tuple[int, int]
    nbytes: int = 1000

    @staticmethod
    def cat_both(references, queries):
        return tuple(replace(codes[0], images=sum((c.images for c in codes), ())) for codes in (references, queries))


def _seen(images: torch.Tensor) -> Seen:
    array = images[0].permute(1, 2, 0).numpy() * 255
    return Seen((array,), tuple(array.shape[:2]))


@dataclass
class IdealNetwork:
    """Exact within its limits, lost beyond them, as a trained network is; `slip` is its error per pixel of flow.

    Zoom counts between the images as its coarsest level sees them, fitted into the same square.
    """

    max_zoom: float = 8.0
    max_angle: float = 180.0
    slip: float = 0.0
    encodings: int = 0
    decodings: int = 0
    settings: ClassVar[NetworkSettings] = NetworkSettings()  # of the published networks: not aligned

    def encode(self, images: torch.Tensor) -> Seen:
        self.encodings += 1
        return _seen(images)

    def decode(self, reference: Seen, query: Seen, last_level: int = 0):
        self.decodings += not last_level
        outputs = [self._decode_one(a, b) for a, b in zip(reference.images, query.images)]
        flow, log_var, logits = (torch.from_numpy(np.stack(parts)) for parts in zip(*outputs))
        return (LevelOutput(1, flow, log_var, logits, reference.high_size, query.high_size),)

    def _decode_one(self, reference: np.ndarray, query: np.ndarray):
        size = (reference.shape[1], reference.shape[0])
        query_from_reference = np.linalg.inv(fit_scene_from_pixels(query)) @ fit_scene_from_pixels(reference)
        grid = grid_points((size[0] // 4, size[1] // 4), size)
        flow = transform(grid, query_from_reference) - grid
        affine = query_from_reference[:2, :2] / query_from_reference[2, 2]
        zoom = np.sqrt(abs(np.linalg.det(affine)))
        zoom *= np.sqrt(np.prod(reference.shape[:2]) / np.prod(query.shape[:2]))
        angle = abs(np.degrees(np.arctan2(affine[1, 0] - affine[0, 1], affine[0, 0] + affine[1, 1])))
        sure = 1 / self.max_zoom < zoom < self.max_zoom and angle < self.max_angle
        flow = flow * (1 + self.slip) if sure else np.zeros_like(flow)
        log_var = np.zeros((2, *flow.shape[:2]), np.float32)
        log_var[1] = 10.0
        logits = np.zeros_like(log_var)
        logits[0] = 5.0 if sure else -5.0
        return flow.transpose(2, 0, 1).astype(np.float32), log_var, logits


@pytest.fixture
def ideal_network():
    return IdealNetwork


@pytest.fixture
def photograph():
    return paint
