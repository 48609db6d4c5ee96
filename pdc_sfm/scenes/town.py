"""The scene: the square with everything on it, and the shadow maps that light it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pdc_sfm.scenes import furniture
from pdc_sfm.scenes.blocks import build_ground, build_rows
from pdc_sfm.scenes.camera import Camera
from pdc_sfm.scenes.conditions import Conditions
from pdc_sfm.scenes.light import COARSER, ShadowMap, shadow_map, sky_directions
from pdc_sfm.scenes.mesh import Frame, Mesh, MeshBuilder
from pdc_sfm.scenes.plan import HALF, ISLAND, KERB, SIDEWALK
from pdc_sfm.scenes.settings import SceneSettings
from pdc_sfm.scenes.trees import tree
from pdc_sfm.scenes.visitors import visitors

_LAMP = np.array([1.0, 0.58, 0.24]) * 16.0  # sodium light


@dataclass
class Scene:
    """A town square. `taken` lists what stands on it: (m, 3) x, y, radius."""

    mesh: Mesh
    taken: np.ndarray
    lamps: np.ndarray  # (k, 3)
    lamp_colours: np.ndarray  # (k, 3)
    sky_directions: np.ndarray  # (d, 3)
    sky_maps: list[ShadowMap]
    texel: float  # of the sun's shadows, metres
    _suns: dict[tuple[float, float], ShadowMap] = field(default_factory=dict)

    def visitors(self, conditions: Conditions, camera: Camera) -> Mesh | None:
        """People and cars of one picture."""
        if conditions.people + conditions.cars == 0:
            return None
        random = np.random.default_rng([conditions.seed, 5])
        return visitors(random, conditions.people, conditions.cars, camera.centre, self.taken)

    def sun_map(self, conditions: Conditions) -> ShadowMap:
        """The town's shadows; drawn once per position of the sun."""
        key = (conditions.sun_azimuth, conditions.sun_elevation)
        if key not in self._suns:
            self._suns[key] = shadow_map(self.mesh, conditions.sun_direction, self.texel, fine=True)
        return self._suns[key]


def build_scene(settings: SceneSettings, lit: bool = True) -> Scene:
    """Build the town of `settings.seed`, and the maps of its sky light (needed to render, not to plan)."""
    seed = settings.seed
    random = np.random.default_rng([seed, 1])
    b = MeshBuilder()
    build_ground(b)
    build_rows(b, random)
    taken, lamps = _furnish(b, np.random.default_rng([seed, 2]))
    mesh = b.build()
    directions, texel = sky_directions(settings.sky_directions), settings.shadow_texel
    maps = [shadow_map(mesh, direction, COARSER * texel) for direction in directions] if lit else []
    return Scene(mesh, np.array(taken), np.array(lamps), np.tile(_LAMP, (len(lamps), 1)), directions, maps, texel)


def _furnish(b: MeshBuilder, random: np.random.Generator) -> tuple[list, list]:
    taken, lamps = [], []

    def place(x: float, y: float, radius: float, heading: float = 0.0) -> Frame:
        taken.append((x, y, radius))
        return Frame.standing(x, y, KERB, heading)

    furniture.fountain(b, place(0.8, 0.3, 3.5), random)
    for x, y in ((-8.2, 4.3), (8.6, 4.6), (-8.6, -4.4), (8.2, -4.8)):
        tree(
            b, place(x + random.uniform(-0.4, 0.4), y, 0.5), random, random.uniform(6.2, 7.8), random.uniform(1.8, 2.3)
        )
    for x, y in (
        (-ISLAND[0] + 0.5, 0.6),
        (ISLAND[0] - 0.5, -0.4),
        (-4.2, -ISLAND[1] + 0.5),
        (4.6, -ISLAND[1] + 0.5),
        (-4.8, ISLAND[1] - 0.5),
        (5.2, ISLAND[1] - 0.5),
        (-HALF[0] + 2.3, 8.5),
        (HALF[0] - 2.3, 7.5),
        (-9.5, -HALF[1] + 2.3),
        (9.0, -HALF[1] + 2.3),
        (-HALF[0] + 2.3, -6.5),
        (HALF[0] - 2.3, -7.0),
        (7.5, HALF[1] - 2.3),
        (-8.0, HALF[1] - 2.3),
    ):
        lamps.append(furniture.lamp_post(b, place(x, y, 0.25)))
    for x, y, heading, word in ((-3.3, 4.7, np.pi, 27), (-6.6, 0.6, -1.75, 28), (4.9, 4.2, 2.6, 30)):
        furniture.stall(b, place(x, y, 1.9, heading + random.uniform(-0.15, 0.15)), word, random)
    for x, y, heading in ((-6.2, -3.4, 1.2), (6.0, -3.2, 2.0), (-2.2, -5.2, 0.1), (2.6, -5.3, -0.05), (7.4, 1.8, 1.6)):
        furniture.bench(b, place(x, y, 0.9, heading), float(random.random()))
    furniture.bill_column(b, place(6.4, -5.9, 0.9), random)
    for x, y in ((-6.5, -HALF[1] + 1.5), (-3.4, -HALF[1] + 1.4), (HALF[0] - 1.5, 1.5)):
        furniture.cafe(b, place(x, y, 1.3), random)
    edge = HALF[1] - SIDEWALK + 0.25
    for x in np.arange(-12.0, 12.1, 2.0):
        for y in (-edge, edge):
            if min(np.hypot(x - tx, y - ty) - r for tx, ty, r in taken) > 0.3:
                furniture.bollard(b, place(float(x), float(y), 0.15))
    return taken, lamps
