"""One self-supervised pair: two views of a photograph with exact dense flow between them (Sec. 3.4-3.6, appendix B).

Every step is a function of coordinates. With S the placement of the views on photograph B, W the warp from reference
to query and e the perturbation, the query is B(S(y)), the reference B(S(W(x + e(x)))) and the flow W(x + e(x)) - x:
the photograph is sampled once for each image, and image and flow come from the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import cv2
import numpy as np

from pdc_sfm.settings import require
from pdc_sfm.synthetic.appearance import MILD, PhotometricSettings, augment
from pdc_sfm.synthetic.objects import Mask, compose_layers, paste, random_cutout, random_objects
from pdc_sfm.synthetic.perturbations import PerturbationSettings, random_residual
from pdc_sfm.synthetic.warps import ImageFrame, Pose, Warp, WarpSettings, in_pixels, jacobian, project, random_warp


@dataclass(frozen=True)
class SyntheticPairSettings:
    """Everything about the synthetic pairs. The ablations of Tab. 8-9 are `mask`, `objects` and `perturbations`."""

    size: tuple[int, int] = (320, 320)  # height and width of both images
    # where flow is trained: injective: unless two points claim one pixel of the query; occlusion: where seen;
    # none: everywhere
    mask: Mask = "injective"
    objects: Literal[0, 1, 2, 3, 4] = 4  # at most so many in a pair
    object_probability: float = 0.8  # of objects in a pair
    perturbations: bool = True  # bend small regions of the flow
    unrelated: float = 0.1  # share of pairs that show different places
    flip: float = 0.5  # probability of mirroring the photograph
    warp: WarpSettings = field(default_factory=WarpSettings)
    elastic: PerturbationSettings = field(default_factory=PerturbationSettings)
    photometric: PhotometricSettings = field(default_factory=PhotometricSettings)

    def __post_init__(self) -> None:
        require(min(self.size) >= 64, f"size={self.size}: both sides at least 64")
        for name in ("object_probability", "unrelated", "flip"):
            require(0 <= getattr(self, name) <= 1, f"{name}={getattr(self, name)} must lie in 0..1")


@dataclass(frozen=True)
class SyntheticPair:
    """A training pair and its ground truth."""

    reference: np.ndarray  # (H, W, 3) uint8
    query: np.ndarray  # (H, W, 3) uint8
    flow: np.ndarray  # (H, W, 2) float32: reference pixel x shows what query pixel x + flow shows
    mask: np.ndarray  # (H, W) bool: the likelihood is asked for here
    visible: np.ndarray  # (H, W) bool: really seen in the query, in view and not occluded
    unrelated: bool  # the images show different places; flow 0, mask and visible False everywhere


class PhotoSource(Protocol):
    """What a pair is made from: `Photographs`, or anything alike."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> np.ndarray: ...
    def other(self, index: int, rng: np.random.Generator) -> int: ...


def make_pair(
    photos: PhotoSource, cutouts: Sequence[np.ndarray] | None, settings: SyntheticPairSettings, rng: np.random.Generator
) -> SyntheticPair:
    """One random pair; without cut-outs objects are shapes cut from other photographs. All chance comes from `rng`."""
    frame = ImageFrame(*settings.size)
    index = int(rng.integers(len(photos)))
    if rng.random() < settings.unrelated:
        first = _lone_view(photos[index], frame, settings, rng)
        second = _lone_view(photos[photos.other(index, rng)], frame, settings, rng)
        nowhere = np.zeros(settings.size, bool)
        return SyntheticPair(first, second, np.zeros((*settings.size, 2), np.float32), nowhere, nowhere.copy(), True)

    photo = _flipped(photos[index], settings, rng)
    warp, pose = random_warp(frame, settings.warp, rng)
    grid = frame.grid()
    start = grid
    if settings.perturbations:
        start = grid + random_residual(frame, settings.elastic, rng)
    background = warp(start)  # x -> x + Y(x) with Y(x) = Y~(x + e(x)) + e(x)
    base_from_query = _placement(photo, frame, warp, pose, rng)
    reference = sample(photo, project(base_from_query, background))
    query = sample(photo, project(base_from_query, grid))

    some = settings.objects and rng.random() < settings.object_probability
    count = int(rng.integers(1, settings.objects + 1)) if some else 0

    def draw() -> np.ndarray:
        if cutouts:
            return cutouts[int(rng.integers(len(cutouts)))]
        return random_cutout(photos[photos.other(index, rng)], rng)

    objects = random_objects(count, draw, warp, frame, rng)
    for item in objects:
        if item.reference_from_cutout is not None:
            paste(reference, item.rgba, item.reference_from_cutout)
        if item.query_from_cutout is not None:
            paste(query, item.rgba, item.query_from_cutout)
    layers = compose_layers(background, objects, frame, settings.mask)
    reference, query = (augment(image, settings.photometric, rng) for image in (reference, query))
    return SyntheticPair(reference, query, layers.target - grid, layers.mask, layers.visible, False)


def validation_pairs(photos: PhotoSource, n: int, seed: int, size: tuple[int, int]) -> Iterator[SyntheticPair]:
    """`n` fixed pairs for curves of PCK: moderate homographies, mild changes of light, each photograph in turn."""
    warp = WarpSettings(affine=0, tps=0, mixed=0, rotated=0, strong=0)
    settings = SyntheticPairSettings(
        size=size, objects=0, perturbations=False, unrelated=0, flip=0, mask="none", warp=warp, photometric=MILD
    )
    return fixed_pairs(photos, n, seed, settings)


def fixed_pairs(photos: PhotoSource, n: int, seed: int, settings: SyntheticPairSettings) -> Iterator[SyntheticPair]:
    """`n` pairs that depend on the seed alone, each photograph in turn."""
    order = np.random.default_rng(seed).permutation(len(photos))
    for i in range(n):
        yield make_pair(_Single(photos[int(order[i % len(order)])]), None, settings, np.random.default_rng([seed, i]))


class _Single:
    """One photograph as a source."""

    def __init__(self, photo: np.ndarray) -> None:
        self.photo = photo

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.photo

    def other(self, index: int, rng: np.random.Generator) -> int:
        return 0


def _lone_view(
    photo: np.ndarray, frame: ImageFrame, settings: SyntheticPairSettings, rng: np.random.Generator
) -> np.ndarray:
    warp, pose = random_warp(frame, settings.warp, rng)
    photo = _flipped(photo, settings, rng)
    matrix = _placement(photo, frame, warp, pose, rng)
    return augment(sample(photo, project(matrix, frame.grid())), settings.photometric, rng)


def _flipped(photo: np.ndarray, settings: SyntheticPairSettings, rng: np.random.Generator) -> np.ndarray:
    return np.ascontiguousarray(photo[:, ::-1]) if rng.random() < settings.flip else photo


def _placement(photo: np.ndarray, frame: ImageFrame, warp: Warp, pose: Pose, rng: np.random.Generator) -> np.ndarray:
    """(3, 3) from query pixels to photograph pixels: S above.

    The distortion is shared out between the images (none, all, or part of it undone on the query's side), so that
    neither is always the untouched one; then the wider view is fitted to the photograph, about pixel for pixel.
    """
    share = rng.choice([0.0, 1.0, rng.random()], p=[0.3, 0.3, 0.4])
    undone = in_pixels(frame, np.linalg.inv(pose.matrix(share)))
    center = np.array(frame.center, np.float32)
    views = [lambda p: project(undone, p), lambda p: project(undone, warp(p))]
    scales = [np.sqrt(abs(np.linalg.det(jacobian(view, center)))) for view in views]
    wide = int(np.argmax(scales))
    height, width = photo.shape[:2]
    short, side = min(height, width), min(frame.height, frame.width)
    cover = rng.uniform(np.clip(0.85 * side / short, 0.4, 1.0), 1.2)  # of the photograph's shorter side
    scale = cover * short / side
    spare = np.maximum((width - scale * frame.width, height - scale * frame.height), 0) / 2
    at = np.array([(width - 1) / 2, (height - 1) / 2]) + spare * rng.uniform(-1, 1, 2)
    scale /= scales[wide]
    middle = views[wide](center[None])[0]
    place = np.array([[scale, 0, at[0] - scale * middle[0]], [0, scale, at[1] - scale * middle[1]], [0, 0, 1.0]])
    return place @ undone


def sample(photo: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The photograph at (H, W, 2) points, sharp where it is enlarged and free of aliasing where it is shrunk.

    Beyond its edges the photograph is mirrored (about the outer edge of its pixels, which shrinking keeps); both images
    see the same mirrored plane, so the flow holds there too.
    """
    step = points[::16, ::16]
    right, down = np.diff(step, axis=1)[:-1] / 16, np.diff(step, axis=0)[:, :-1] / 16
    scale = float(np.sqrt(np.median(np.abs(right[..., 0] * down[..., 1] - right[..., 1] * down[..., 0]))))
    # OpenCV's cubic kernel displaces by up to 0.05 px, alternating where the photograph is enlarged, but not at scale 1
    kernel = cv2.INTER_CUBIC if scale < 0.9 else cv2.INTER_LANCZOS4
    if scale > 1.3:
        height, width = photo.shape[:2]
        size = (max(2, round(1.25 * width / scale)), max(2, round(1.25 * height / scale)))
        factor = np.array([size[0] / width, size[1] / height], np.float32)
        photo, points = cv2.resize(photo, size, interpolation=cv2.INTER_AREA), (points + 0.5) * factor - 0.5
        kernel = cv2.INTER_LINEAR
    return cv2.remap(photo, points.astype(np.float32), None, kernel, borderMode=cv2.BORDER_REFLECT)
