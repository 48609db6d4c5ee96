"""Pairs of rendered scenes as a source of training samples: parallax, occlusion and repeated structure, exactly known.

Two views of one scene that show nothing in common are the hardest of unrelated pairs: the same windows, other walls.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from pdc_sfm.errors import UserError
from pdc_sfm.images import read_image
from pdc_sfm.pixels import ImageShape
from pdc_sfm.scenes import SceneTruth
from pdc_sfm.scenes.layouts.scene_json import RECORD
from pdc_sfm.synthetic.appearance import PhotometricSettings, augment
from pdc_sfm.synthetic.objects import transform
from pdc_sfm.synthetic.warps import ImageFrame
from pdc_sfm.training.sources import Sample
from pdc_sfm.training.supervision import SupervisionSettings, Window

TOWN = "plain"  # the kind of a town's folder: its layout


class RenderedScene:
    """A folder of `pdc-sfm scene`: its pairs in both directions, those that overlap and those that do not."""

    def __init__(self, folder: Path | str, min_overlap: float):
        self.truth = SceneTruth(Path(folder))
        self.kind = scene_kind(Path(folder))
        names = sorted(self.truth.cameras)
        shares = {(a, b): self.truth.overlap(a, b) for a in names for b in names if a != b}
        self.overlapping = [pair for pair, share in shares.items() if share >= min_overlap]
        self.apart = [(a, b) for (a, b), share in shares.items() if share == 0 == shares[b, a]]
        if not self.overlapping:
            raise UserError(f"no two images of {folder} overlap by {min_overlap:.0%}: lower supervision.min_overlap")

    def image(self, name: str) -> np.ndarray:
        """Read anew each time: of many scenes one picture is seldom wanted twice, and reading takes little."""
        return read_image(self.truth.folder / "images" / name)

    def flow(self, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
        """Flow and visibility between two of its pictures."""
        return self.truth.flow(first, second)


class RenderedSource:
    """Samples cut from pairs of rendered scenes: every kind as often as any other, or towns as often as the settings say; and
    within a kind every scene."""

    def __init__(
        self,
        scenes: Sequence[RenderedScene],
        settings: SupervisionSettings,
        photometric: PhotometricSettings,
        seed: int,
    ):
        kinds = sorted({scene.kind for scene in scenes})
        self.kinds = [[scene for scene in scenes if scene.kind == kind] for kind in kinds]
        self.shares = kind_shares(kinds, settings.town_share)
        self.settings, self.photometric, self.seed = settings, photometric, seed

    def sample(self, index: int, size: ImageShape) -> Sample:
        """Sample number `index`; chance, fixed by the number, chooses scene, pair and cut-out."""
        rng = np.random.default_rng([self.seed, index, 3])
        scenes = self.kinds[int(rng.choice(len(self.kinds), p=self.shares))]
        scene = scenes[int(rng.integers(len(scenes)))]
        apart = len(scene.apart) > 0 and rng.random() < self.settings.look_alike
        pairs = scene.apart if apart else scene.overlapping
        names = pairs[int(rng.integers(len(pairs)))]
        turn = self.settings.max_turn * rng.uniform(-1, 1) * (rng.random() < self.settings.turned_share)
        sample = cut_views(scene, names, size, self.settings.max_zoom, rng, turn)
        reference, query = (augment(image, self.photometric, rng) for image in (sample.reference, sample.query))
        return Sample(reference, query, sample.flow, sample.valid, sample.hidden)


def cut_views(
    scene: RenderedScene,
    names: tuple[str, str],
    size: ImageShape,
    max_zoom: float,
    rng: np.random.Generator,
    turn: float = 0.0,
) -> Sample:
    """Windows of two views, the query's around what the middle of the reference's shows, with flow and visibility.

    The query is turned by so many degrees; its window is then cut from the middle of a larger one.
    """
    images = [scene.image(name) for name in names]
    flow, visible = scene.flow(*names)
    y, x = np.nonzero(visible) if visible.any() else np.nonzero(np.ones_like(visible))
    chosen = int(rng.integers(len(x)))
    first = np.array([x[chosen], y[chosen]], float)
    second, wide = first + flow[y[chosen], x[chosen]], _turned_size(size, turn)
    windows = [
        Window.around(center, image.shape[1::-1], shape, rng.uniform(1.0, max_zoom))
        for image, center, shape in zip(images, (first, second), (size, wide))
    ]
    shown = [window.cut(image) for window, image in zip(windows, images)]
    turned = _turning(wide, size, turn)
    if turn:
        shown[1] = cv2.warpAffine(shown[1], turned, size[::-1], flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    grid = ImageFrame(*size).grid()
    at = windows[0].to_image(grid)
    seen, moved = (_at(values, at) for values in (visible.astype(np.float32), flow))
    target = transform(turned, windows[1].from_image(at + moved))
    inside = ImageFrame(*size).contains(target)
    # At the edges of things the four pixels around a place lie on two surfaces: neither seen nor hidden for certain.
    smooth = np.abs(moved - _at(flow, at, cv2.INTER_NEAREST)).max(-1) < 2
    valid = inside & smooth & (seen > 0.999)
    hidden = ~inside | (seen < 0.001)
    flow = np.where(valid[..., None], target - grid, 0).astype(np.float32)
    return Sample(shown[0], shown[1], flow, valid, hidden)


def _turned_size(size: ImageShape, degrees: float) -> ImageShape:
    """(height, width) of an upright window that holds a turned one."""
    c, s = abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))
    return math.ceil(c * size[0] + s * size[1]), math.ceil(s * size[0] + c * size[1])


def _turning(wide: ImageShape, size: ImageShape, degrees: float) -> np.ndarray:
    """(2, 3) from pixels of the wide window to those of the turned one in its middle."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    linear = np.array([[c, -s], [s, c]])
    return np.column_stack([linear, np.array(ImageFrame(*size).center) - linear @ np.array(ImageFrame(*wide).center)])


def kind_shares(kinds: Sequence[str], of_towns: float) -> np.ndarray:
    """(K,) how often each kind is drawn; towns so often, if there are others and it is not 0."""
    towns = np.array([kind == TOWN for kind in kinds])
    if of_towns == 0 or towns.all() or not towns.any():
        return np.full(len(kinds), 1 / len(kinds))
    return np.where(towns, of_towns / towns.sum(), (1 - of_towns) / (~towns).sum())


def scene_kind(folder: Path) -> str:
    """What a scene folder shows, as its record says: plain (a town), room, object or court."""
    try:
        return str(json.loads((folder / RECORD).read_text(encoding="utf-8"))["layout"])
    except (OSError, ValueError, KeyError, TypeError):
        return TOWN  # a folder without a record has images, cameras and depth all the same


def _at(values: np.ndarray, points: np.ndarray, kernel: int = cv2.INTER_LINEAR) -> np.ndarray:
    return cv2.remap(values, points.astype(np.float32), None, kernel, borderMode=cv2.BORDER_REPLICATE)
