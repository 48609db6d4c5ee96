"""A generated database for retrieval: places, each photographed several times, as visitors do.

A place is a point on the walk through one of several towns. Its photographs differ in position (half a metre), direction
and light; a query is one more of them, on another day or by night. Towns have the same plan and other houses: places of
different towns look alike, and are not the same.
"""

from __future__ import annotations

import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pdc_sfm.images import write_image
from pdc_sfm.scenes import Camera, Scene, SceneSettings, Shot, build_scene, plan_shots, render
from pdc_sfm.scenes.conditions import database_conditions, day_conditions, night_conditions

TOWN = SceneSettings(width=640, height=480, database=20, depth=False, sky_directions=8, shadow_texel=0.06)
PHOTOGRAPHS = 10  # of a place


@dataclass(frozen=True)
class Place:
    """A place of a town, and what is to be photographed there."""

    town: SceneSettings
    number: int
    folder: Path
    photographs: int
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
    workers: int = 1,
) -> tuple[list[str], list[str]]:
    """Queries and database, as names below `folder`; what was photographed before is kept."""
    count = -(-images // photographs)
    asked = {round(k) for k in np.linspace(0, count - 1, min(queries, count))} if count > queries else set(range(count))
    places = [
        Place(replace(town, seed=k // town.database), k % town.database, folder, photographs, k in asked)
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
    for k, name in enumerate([*place.names, *([place.query_name] if place.query else [])]):
        path = place.folder / name
        if not path.exists():
            scene, shots = _town(place.town)
            image = _take(scene, shots[place.number], k, name == place.query_name)
            unfinished = path.with_name(f".{path.name}")
            write_image(unfinished, image)
            unfinished.replace(path)


def _take(scene: Scene, shot: Shot, k: int, query: bool) -> np.ndarray:
    random = np.random.default_rng([shot.seed, 1000 if query else k])
    eye = shot.camera.centre + random.uniform(-0.5, 0.5, 3) * (1, 1, 0.1)
    ahead = shot.camera.centre + 15 * shot.camera.cam_from_world[2, :3] + random.uniform(-1.5, 1.5, 3) * (1, 1, 0.3)
    camera = Camera.looking(eye, ahead, shot.camera.size, shot.camera.focal * random.uniform(0.9, 1.1))
    if not query:
        conditions = database_conditions(int(random.integers(3)), 3, random)
    else:
        conditions = (night_conditions if shot.number % 4 == 0 else day_conditions)(shot.number, random)
    return render(scene, camera, conditions, int(random.integers(2**31))).image


@functools.lru_cache(1)
def _town(settings: SceneSettings) -> tuple[Scene, list[Shot]]:
    scene = build_scene(settings)
    return scene, plan_shots(settings, scene.taken)
