"""The pairs a confidence head of matches is fitted to, kind by kind: each has errors that the others have not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pdc_sfm.synthetic.appearance import PhotometricSettings
from pdc_sfm.synthetic.pairs import PhotoSource, SyntheticPair, SyntheticPairSettings, fixed_pairs, make_pair
from pdc_sfm.synthetic.photographs import open_photographs
from pdc_sfm.synthetic.warps import WarpSettings
from pdc_sfm.training.rendered import RenderedScene

SIZE = (480, 640)  # (height, width) of warped photographs
MIN_OVERLAP = 0.15  # of rendered views
_VIEWS = WarpSettings(
    homography=1, affine=0, tps=0, mixed=0, moderate=0.8, rotated=0, strong=0.2, max_rotation=20, max_zoom=2
)
_PLANES = SyntheticPairSettings(
    size=SIZE, objects=0, perturbations=False, unrelated=0, flip=0.5, mask="none", warp=_VIEWS
)
_MOVING = SyntheticPairSettings(
    size=SIZE, object_probability=1, unrelated=0, warp=WarpSettings(moderate=1, rotated=0, strong=0)
)


class Pairs:
    """Pairs made one after another, as they are wanted."""

    def __init__(self, count: int, make: Callable[[], Iterable[SyntheticPair]]):
        self.count, self.make = count, make

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[SyntheticPair]:
        return iter(self.make())


@dataclass(frozen=True)
class PairKind:
    """Pairs of one kind: those to fit to, and those that judge the fit."""

    name: str
    fitting: Pairs
    judging: Pairs


def calibration_kinds(
    photos: Path, cutouts: Sequence[np.ndarray] | None, scenes: Sequence[Path], count: int
) -> list[PairKind]:
    """`count` pairs of each kind to fit to and a quarter as many to judge by: warped photographs, such with objects that
    move, and views of every rendered scene (whose own pairs are divided).
    """
    parts = open_photographs(photos, "training"), open_photographs(photos, "validation")
    counts = count, -(-count // 4)
    kinds = [
        PairKind("warped photographs", *(Pairs(n, functools.partial(_planes, p, n)) for p, n in zip(parts, counts))),
        PairKind(
            "moving objects", *(Pairs(n, functools.partial(_moving, p, cutouts, n)) for p, n in zip(parts, counts))
        ),
    ]
    return kinds + [_views(Path(folder), *counts) for folder in scenes]


def _planes(photos: PhotoSource, count: int) -> Iterator[SyntheticPair]:
    """Half of the pairs with nothing changed but the view, the others as another camera saw them, by day or night."""
    clean = replace(_PLANES, photometric=PhotometricSettings(strength=0))
    yield from fixed_pairs(photos, count // 2, 11, clean)
    yield from fixed_pairs(photos, count - count // 2, 12, _PLANES)


def _moving(photos: PhotoSource, cutouts: Sequence[np.ndarray] | None, count: int) -> Iterator[SyntheticPair]:
    for number in range(count):
        yield make_pair(photos, cutouts, _MOVING, np.random.default_rng([13, number]))


def _views(folder: Path, fitting: int, judging: int) -> PairKind:
    """The pairs of a scene that share most: views close together where it has many, far apart where it has few."""
    scene = RenderedScene(folder, MIN_OVERLAP)
    shared = [min(scene.truth.overlap(a, b), scene.truth.overlap(b, a)) for a, b in scene.overlapping]
    chosen = [scene.overlapping[n] for n in np.argsort(-np.array(shared), kind="stable")[: fitting + judging]]
    apart, rest = chosen[::5], [pair for number, pair in enumerate(chosen) if number % 5]

    def pairs(names: Sequence[tuple[str, str]]) -> Pairs:
        return Pairs(len(names), lambda: (_pair(scene, *both) for both in names))

    return PairKind(f"views of {folder.name}", pairs(rest), pairs(apart))


def _pair(scene: RenderedScene, first: str, second: str) -> SyntheticPair:
    flow, visible = scene.flow(first, second)
    return SyntheticPair(scene.image(first), scene.image(second), flow, visible, visible, False)
