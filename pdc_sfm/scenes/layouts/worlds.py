"""A room or a set of objects as a plain scene folder, and the pictures its surfaces carry."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from pdc_sfm.errors import UserError
from pdc_sfm.images import read_image
from pdc_sfm.processes import in_order
from pdc_sfm.scenes.indoor.court import build_court
from pdc_sfm.scenes.indoor.room import build_rooms
from pdc_sfm.scenes.layouts.plain import Progress, write_pictures
from pdc_sfm.scenes.objects.stage import build_objects
from pdc_sfm.scenes.render.renderer import Rendering
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import WorldKind, WorldSettings
from pdc_sfm.scenes.worlds.patterns import pattern
from pdc_sfm.scenes.worlds.skins import Textures
from pdc_sfm.scenes.worlds.world import World, picture_of

LARGEST = 640  # pixels of a texture's longer side

Build = Callable[[WorldSettings, Textures], list[tuple[World, Shot]]]
_BUILDERS: dict[WorldKind, Build] = {"room": build_rooms, "object": build_objects, "court": build_court}


def write_world(
    folder: Path | str,
    kind: WorldKind,
    settings: WorldSettings,
    photos: Sequence[Path] = (),
    workers: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Render a world into `folder`, unless it is there already. Without photographs its pictures are drawn."""
    return write_pictures(
        folder, settings, kind, settings.images, lambda: _pictures(kind, settings, photos, workers), progress
    )


def build_world(kind: WorldKind, settings: WorldSettings, photos: Sequence[Path] = ()) -> list[tuple[World, Shot]]:
    """The pictures to take, each with the world it shows: one, or two that look alike."""
    return _BUILDERS[kind](settings, Textures(_surfaces(settings, photos)))


def _surfaces(settings: WorldSettings, photos: Sequence[Path]) -> list[np.ndarray]:
    random = np.random.default_rng([settings.seed, 10])
    if not photos:
        return [pattern(random) for _ in range(settings.textures)]
    chosen = random.choice(len(photos), settings.textures, replace=len(photos) < settings.textures)
    return [_small(read_image(photos[int(number)])) for number in chosen]


def _small(picture: np.ndarray) -> np.ndarray:
    shrink = LARGEST / max(picture.shape[:2])
    return picture if shrink >= 1 else cv2.resize(picture, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)


def _pictures(
    kind: WorldKind, settings: WorldSettings, photos: Sequence[Path], workers: int
) -> Iterator[tuple[Shot, Rendering]]:
    photographer = _WorldPhotographer(kind, settings, tuple(photos))
    shots = [shot for _, shot in photographer.views]
    if len(shots) < settings.images:
        raise UserError(
            f"only {len(shots)} of {settings.images} pictures found a place in this {kind}: try another seed"
        )
    workers = min(workers, len(shots))
    yield from zip(shots, in_order(photographer, stop=len(shots), workers=workers if workers > 1 else 0))


@dataclass(frozen=True)
class _WorldPhotographer:
    """Takes picture number n; each process builds the world once."""

    kind: WorldKind
    settings: WorldSettings
    photos: tuple[Path, ...]

    @functools.cached_property
    def views(self) -> list[tuple[World, Shot]]:
        return build_world(self.kind, self.settings, self.photos)

    def __reduce__(self) -> tuple:
        return _WorldPhotographer, (self.kind, self.settings, self.photos)  # a worker builds its own world

    def __call__(self, number: int) -> Rendering:
        return picture_of(*self.views[number])
