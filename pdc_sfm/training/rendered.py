"""Pairs of rendered scenes as a source of training samples: parallax, occlusion and repeated structure, exactly known.

Two views of one scene that show nothing in common are the hardest of unrelated pairs: the same windows, other walls.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from pdc_sfm.errors import UserError
from pdc_sfm.images import read_image
from pdc_sfm.scenes import SceneTruth
from pdc_sfm.synthetic.photometric import PhotometricSettings, augment
from pdc_sfm.synthetic.warps import Frame
from pdc_sfm.training.sources import Sample, Size
from pdc_sfm.training.supervision import SupervisionSettings, Window

LOOK_ALIKE = 0.12  # share of the samples whose views have nothing in common


class RenderedScene:
    """A folder of `pdc-sfm scene`: its pairs in both directions, those that overlap and those that do not."""

    def __init__(self, folder: Path | str, min_overlap: float):
        self.truth = SceneTruth(Path(folder))
        names = sorted(self.truth.cameras)
        shares = {(a, b): self.truth.overlap(a, b) for a in names for b in names if a != b}
        self.overlapping = [pair for pair, share in shares.items() if share >= min_overlap]
        self.apart = [(a, b) for (a, b), share in shares.items() if share == 0 == shares[b, a]]
        if not self.overlapping:
            raise UserError(f"no two images of {folder} overlap by {min_overlap:.0%}: lower supervision.min_overlap")
        self._read()

    def _read(self) -> None:
        self.image = functools.lru_cache(64)(lambda name: read_image(self.truth.folder / "images" / name))
        self.flow = functools.lru_cache(16)(self.truth.flow)

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name not in ("image", "flow")}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._read()


class RenderedSource:
    """Samples cut from pairs of rendered scenes, every scene as often as any other."""

    def __init__(
        self,
        scenes: Sequence[RenderedScene],
        settings: SupervisionSettings,
        photometric: PhotometricSettings,
        seed: int,
    ):
        self.scenes, self.settings, self.photometric, self.seed = scenes, settings, photometric, seed

    def sample(self, index: int, size: Size) -> Sample:
        """Sample number `index`; chance, fixed by the number, chooses scene, pair and cut-out."""
        rng = np.random.default_rng([self.seed, index, 3])
        scene = self.scenes[int(rng.integers(len(self.scenes)))]
        apart = len(scene.apart) > 0 and rng.random() < LOOK_ALIKE
        pairs = scene.apart if apart else scene.overlapping
        names = pairs[int(rng.integers(len(pairs)))]
        sample = cut_views(scene, names, size, self.settings.max_zoom, rng)
        reference, query = (augment(image, self.photometric, rng) for image in (sample.reference, sample.query))
        return Sample(reference, query, sample.flow, sample.valid, sample.hidden)


def cut_views(
    scene: RenderedScene, names: tuple[str, str], size: Size, max_zoom: float, rng: np.random.Generator
) -> Sample:
    """Windows of two views, the query's around what the middle of the reference's shows, with flow and visibility."""
    images = [scene.image(name) for name in names]
    flow, visible = scene.flow(*names)
    y, x = np.nonzero(visible) if visible.any() else np.nonzero(np.ones_like(visible))
    chosen = int(rng.integers(len(x)))
    first = np.array([x[chosen], y[chosen]], float)
    windows = [
        Window.around(centre, image.shape[1::-1], size, rng.uniform(1.0, max_zoom))
        for image, centre in zip(images, (first, first + flow[y[chosen], x[chosen]]))
    ]
    grid = Frame(*size).grid()
    at = windows[0].to_image(grid)
    seen, moved = (_at(values, at) for values in (visible.astype(np.float32), flow))
    target = windows[1].from_image(at + moved)
    inside = Frame(*size).contains(target)
    # At the edges of things the four pixels around a place lie on two surfaces: neither seen nor hidden for certain.
    smooth = np.abs(moved - _at(flow, at, cv2.INTER_NEAREST)).max(-1) < 2
    valid = inside & smooth & (seen > 0.999)
    hidden = ~inside | (seen < 0.001)
    shown = [window.cut(image) for window, image in zip(windows, images)]
    return Sample(*shown, np.where(valid[..., None], target - grid, 0).astype(np.float32), valid, hidden)


def _at(values: np.ndarray, points: np.ndarray, kernel: int = cv2.INTER_LINEAR) -> np.ndarray:
    return cv2.remap(values, points.astype(np.float32), None, kernel, borderMode=cv2.BORDER_REPLICATE)
