"""A generated database for retrieval: places, each photographed several times, as visitors do.

A place is a point on the walk through one of several towns. A visitor stands somewhere near it (half a metre), at some hour,
and takes photographs in several directions: rendered once, wide, and cut from that as a camera that turns sees it. A query is
one more photograph, by someone else, on another day or by night. Towns have the same plan and other houses: places of
different towns look alike, and are not the same.
"""

from __future__ import annotations

import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from pdc_sfm.images import write_image
from pdc_sfm.scenes import Camera, SceneSettings, Shot, Town, build_scene, plan_shots, render_image
from pdc_sfm.scenes.render.conditions import database_conditions, day_conditions, night_conditions

TOWN = SceneSettings(width=400, height=300, database=20, depth=False, sky_directions=8, shadow_texel=0.06)
PHOTOGRAPHS = 10  # of a place
WIDER = 1.3  # what is rendered, by what a photograph shows
NOISE = 2.0  # gray levels, different in every photograph


@dataclass(frozen=True)
class Place:
    """A place of a town, and what is to be photographed there."""

    town: SceneSettings
    number: int
    folder: Path
    photographs: int
    visitors: int
    query: bool

    @property
    def names(self) -> list[str]:
        return [f"{self.town.seed:02d}/{self.number:02d}/{k:02d}.jpg" for k in range(self.photographs)]

    @property
    def query_name(self) -> str:
        return f"{self.town.seed:02d}/{self.number:02d}/query.jpg"


def photograph_places(
    folder: Path,
    images: int,
    queries: int,
    town: SceneSettings = TOWN,
    photographs: int = PHOTOGRAPHS,
    visitors: int = 1,
    workers: int = 1,
) -> tuple[list[str], list[str]]:
    """Queries and database, as names below `folder`; what was photographed before is kept."""
    count = -(-images // photographs)
    asked = {round(k) for k in np.linspace(0, count - 1, min(queries, count))}
    places = [
        Place(replace(town, seed=k // town.database), k % town.database, folder, photographs, visitors, k in asked)
        for k in range(count)
    ]
    if workers > 1:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(photograph, places, chunksize=max(1, town.database // workers)))
    else:
        for place in places:
            photograph(place)
    database = [name for place in places for name in place.names][:images]
    return [place.query_name for place in places if place.query], database


def photograph(place: Place) -> None:
    """Take the photographs of a place that are not there yet."""
    each = -(-place.photographs // place.visitors)
    for visitor in range(place.visitors):
        names = place.names[visitor * each : (visitor + 1) * each]
        if not all((place.folder / name).exists() for name in names):
            for name, image in zip(names, _visit(place, visitor, len(names))):
                _write(place.folder / name, image)
    if place.query and not (place.folder / place.query_name).exists():
        _write(place.folder / place.query_name, _query(place))


def _write(path: Path, image: np.ndarray) -> None:
    unfinished = path.with_name(f".{path.name}")
    write_image(unfinished, image)
    unfinished.replace(path)


def _visit(place: Place, visitor: int, count: int) -> list[np.ndarray]:
    """Photographs of one visitor."""
    scene, shot = _shot(place)
    random = np.random.default_rng([shot.seed, visitor])
    camera = _near(shot, random, 1.0)
    wide = replace(camera, width=round(WIDER * camera.width), height=round(WIDER * camera.height))
    seen = render_image(
        scene, wide, database_conditions(int(random.integers(3)), 3, random), int(random.integers(2**31))
    ).image
    return [_turned(seen, wide, camera, random) for _ in range(count)]


def _query(place: Place) -> np.ndarray:
    scene, shot = _shot(place)
    random = np.random.default_rng([shot.seed, 1000])
    camera = _near(shot, random, random.uniform(0.9, 1.1))
    conditions = (night_conditions if shot.number % 4 == 0 else day_conditions)(shot.number, random)
    return render_image(scene, camera, conditions, int(random.integers(2**31))).image


def _near(shot: Shot, random: np.random.Generator, zoom: float) -> Camera:
    eye = shot.camera.center + random.uniform(-0.5, 0.5, 3) * (1, 1, 0.1)
    ahead = shot.camera.center + 15 * shot.camera.cam_from_world[2, :3] + random.uniform(-1.5, 1.5, 3) * (1, 1, 0.3)
    return Camera.looking(eye, ahead, shot.camera.size, shot.camera.focal * zoom)


def _turned(seen: np.ndarray, wide: Camera, camera: Camera, random: np.random.Generator) -> np.ndarray:
    """What a camera at the same place sees that is turned and zooms a little: a homography of what was rendered."""
    turn = cv2.Rodrigues(random.uniform(-1, 1, 3) * (0.06, 0.10, 0.03))[0]  # up and down, to the sides, about the axis
    focal = camera.focal * random.uniform(1.0, 1.2)
    middle = np.array([[focal, 0, camera.width / 2 - 0.5], [0, focal, camera.height / 2 - 0.5], [0, 0, 1]])
    wide_middle = wide.matrix - np.array([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]])  # pixel indices
    homography = middle @ turn @ np.linalg.inv(wide_middle)
    image = cv2.warpPerspective(seen, homography, camera.size, flags=cv2.INTER_AREA, borderMode=cv2.BORDER_REFLECT)
    light = random.uniform(0.85, 1.15) + random.uniform(-0.03, 0.03, 3)
    noisy = image * light + random.normal(0, NOISE, image.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def _shot(place: Place) -> tuple[Town, Shot]:
    scene, shots = _town(place.town)
    return scene, shots[place.number]


@functools.lru_cache(1)
def _town(settings: SceneSettings) -> tuple[Town, list[Shot]]:
    scene = build_scene(settings)
    return scene, plan_shots(settings, scene.taken)
