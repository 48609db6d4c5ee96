"""Real pairs with sparse correspondences (second stage, Sec. 4.1 and appendix B), as a source of training samples."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np

from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.images import read_image
from pdc_sfm.pixels import ImageShape, rescale
from pdc_sfm.settings import require
from pdc_sfm.synthetic.appearance import PhotometricSettings, augment
from pdc_sfm.training.sources import Sample


@dataclass(frozen=True)
class SupervisionSettings:
    """Which real pairs are used, and how."""

    min_overlap: float = 0.3  # share of the reference's points that the query sees as well (appendix B)
    min_points: int = 24  # correspondences that must remain in the cut-out images
    max_points: int = 4096  # correspondences used of a pair
    max_error: float = 2.0  # px: points of a model that project farther from their keypoint are left out
    depth_tolerance: float = 0.05  # relative: farther apart, the point is occluded (depth maps)
    max_zoom: float = 1.6  # cut-outs show the image at up to this zoom
    max_turn: float = 0.0  # degrees: queries of rendered scenes are rotated by up to so much
    turned_share: float = 0.5  # of the queries of rendered scenes are rotated
    town_share: float = 0.0  # of the rendered samples are of towns; 0: every kind of scene as often as any other
    look_alike: float = 0.12  # share of the rendered samples whose views have nothing in common
    validation_share: float = 0.1  # of the pairs, held out for validation

    def __post_init__(self) -> None:
        require(0 < self.min_overlap <= 1, "supervision.min_overlap must lie in (0, 1]")
        require(self.min_points >= 1, "supervision.min_points must be at least 1")
        require(self.max_points >= self.min_points, "supervision.max_points must not be below min_points")
        require(self.max_error > 0, "supervision.max_error must be positive")
        require(0 < self.depth_tolerance < 1, "supervision.depth_tolerance must lie in (0, 1)")
        require(self.max_zoom >= 1, "supervision.max_zoom must be at least 1")
        require(0 <= self.max_turn <= 180, "supervision.max_turn must lie in [0, 180] degrees")
        for name in ("look_alike", "turned_share", "town_share"):
            require(0 <= getattr(self, name) <= 1, f"supervision.{name} must lie in [0, 1]")
        require(0 <= self.validation_share < 1, "supervision.validation_share must lie in [0, 1)")


@dataclass(frozen=True)
class RealPair:
    """Two photographs and points that both show."""

    reference: np.ndarray  # (H, W, 3) uint8
    query: np.ndarray
    points: np.ndarray  # (N, 4) float32, pixel indices: x, y in the reference, x, y in the query


class SupervisedScene(Protocol):
    """A place with pairs of its photographs."""

    def __len__(self) -> int: ...
    def pair(self, index: int, rng: np.random.Generator) -> RealPair: ...


class Directions:
    """Ordered pairs (P, 2), grouped so that both directions of a pair have one number."""

    def __init__(self, directed: np.ndarray):
        order = np.sort(directed.reshape(-1, 2), axis=1)
        self.unordered, group = np.unique(order, axis=0, return_inverse=True)
        self.directed = directed[np.argsort(group.reshape(-1), kind="stable")]
        self.start = np.concatenate([[0], np.cumsum(np.bincount(group.reshape(-1), minlength=len(self.unordered)))])

    def __len__(self) -> int:
        return len(self.unordered)

    def draw(self, number: int, rng: np.random.Generator) -> tuple[int, int]:
        """Reference and query of a pair, in one of the directions it has."""
        first, second = self.directed[int(rng.integers(self.start[number], self.start[number + 1]))]
        return int(first), int(second)


class ModelScene:
    """The photographs of a COLMAP model; each pair sees at least `min_overlap` of the reference's points in common."""

    def __init__(self, model: Path | str, images: Path | str, settings: SupervisionSettings):
        from pdc_sfm.colmap.io.shared_points import read_views

        self.images = Path(images)
        self.views = read_views(model, settings.max_error)
        missing = [name for name in self.views.names if not (self.images / name).is_file()]
        if missing:
            raise FormatError(f"{len(missing)} images of {model} are not in {images}, first {missing[0]}")
        directed = self.views.overlapping(settings.min_overlap, settings.min_points)
        self.pairs = Directions(directed)
        if not len(self.pairs):
            raise UserError(
                f"no two images of {model} share {settings.min_points} points and {settings.min_overlap:.0%} of what "
                "they see: lower supervision.min_overlap or supervision.min_points"
            )
        self._read = functools.lru_cache(64)(self._image)

    def __len__(self) -> int:
        return len(self.pairs)

    def _image(self, number: int) -> np.ndarray:
        image, size = read_image(self.images / self.views.names[number]), self.views.sizes[number]
        if image.shape[1::-1] != size:
            raise FormatError(
                f"{self.images / self.views.names[number]} is {image.shape[1]}x{image.shape[0]} px, in the model "
                f"{size[0]}x{size[1]}: give the images the model was made from"
            )
        return image

    def pair(self, index: int, rng: np.random.Generator) -> RealPair:
        """SyntheticPair number `index`, in one of its directions."""
        first, second = self.pairs.draw(index, rng)
        return RealPair(self._read(first), self._read(second), self.views.shared(first, second))

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name != "_read"}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._read = functools.lru_cache(64)(self._image)


@dataclass(frozen=True)
class RealSource:
    """Samples cut from real pairs, every scene as often as any other."""

    scenes: Sequence[SupervisedScene]
    settings: SupervisionSettings
    photometric: PhotometricSettings
    seed: int
    kept_apart: bool = False  # give the pairs kept for validation instead of those for training

    def sample(self, index: int, size: ImageShape) -> Sample:
        """Sample number `index`; chance, fixed by the number, chooses scene, pair and cut-out."""
        rng = np.random.default_rng([self.seed, index, 2])
        for _ in range(50):
            scene = self.scenes[int(rng.integers(len(self.scenes)))]
            number = int(rng.integers(len(scene)))
            if len(scene) > 1 and is_kept_apart(number, self.settings.validation_share) != self.kept_apart:
                continue
            sample = cut_out(scene.pair(number, rng), size, self.settings, rng)
            if sample is not None:
                reference, query = (augment(image, self.photometric, rng) for image in (sample.reference, sample.query))
                return Sample(reference, query, sample.flow, sample.valid, sample.hidden, sample.points)
        raise UserError(
            f"in 50 tries no real pair had {self.settings.min_points} correspondences: lower supervision.min_points"
        )


def is_kept_apart(number: int, share: float) -> bool:
    """Whether a scene's pair is kept for validation: fixed by its number, spread evenly."""
    return share > 0 and int((number + 1) * share) > int(number * share)


def cut_out(pair: RealPair, size: ImageShape, settings: SupervisionSettings, rng: np.random.Generator) -> Sample | None:
    """Both photographs cut to (height, width) around their common points; None if too few points remain."""
    points = pair.points
    if len(points) > settings.max_points:
        points = points[rng.choice(len(points), settings.max_points, replace=False)]
    middle = points[int(rng.integers(len(points)))] if len(points) else np.zeros(4, np.float32)
    images, moved = [], []
    for image, xy, center in ((pair.reference, points[:, :2], middle[:2]), (pair.query, points[:, 2:], middle[2:])):
        zoom = rng.uniform(1.0, settings.max_zoom)
        window = Window.around(center, image.shape[1::-1], size, zoom)
        images.append(window.cut(image))
        moved.append(window.from_image(xy))
    limit = np.array([size[1] - 1, size[0] - 1])
    inside = np.all([((xy >= 0) & (xy <= limit)).all(1) for xy in moved], axis=0)
    if inside.sum() < settings.min_points:
        return None
    nowhere = np.zeros(size, bool)
    correspondences = np.hstack(moved)[inside].astype(np.float32)
    return Sample(images[0], images[1], np.zeros((*size, 2), np.float32), nowhere, nowhere.copy(), correspondences)


@dataclass(frozen=True)
class Window:
    """A part of an image, resized: sizes are (width, height), points pixel indices."""

    image_size: tuple[int, int]
    resized: tuple[int, int]  # of the whole image
    corner: tuple[int, int]  # of the part, in the resized image
    size: tuple[int, int]

    @classmethod
    def around(cls, center: np.ndarray, image_size: tuple[int, int], size: ImageShape, zoom: float) -> Window:
        """A window of (height, width) around a point. At zoom 1 it covers as much of the image as fits its shape."""
        (width, height), (h, w) = image_size, size
        scale = zoom * max(h / height, w / width)
        resized = max(w, round(width * scale)), max(h, round(height * scale))
        middle = rescale(np.asarray(center, np.float64), image_size, resized)
        left, top = (int(np.clip(round(m - s / 2), 0, r - s)) for m, s, r in zip(middle, (w, h), resized))
        return cls(image_size, resized, (left, top), (w, h))

    def cut(self, image: np.ndarray) -> np.ndarray:
        """The part of (H, W, 3) pixels."""
        (left, top), (width, height) = self.corner, self.size
        shrinks = self.resized[0] < self.image_size[0]
        whole = cv2.resize(image, self.resized, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
        return np.ascontiguousarray(whole[top : top + height, left : left + width])

    def from_image(self, points: np.ndarray) -> np.ndarray:
        """Where points (..., 2) of the image are in the window."""
        return rescale(np.asarray(points, np.float64), self.image_size, self.resized) - self.corner

    def to_image(self, points: np.ndarray) -> np.ndarray:
        """Where points (..., 2) of the window are in the image."""
        return rescale(np.asarray(points, np.float64) + self.corner, self.resized, self.image_size)
