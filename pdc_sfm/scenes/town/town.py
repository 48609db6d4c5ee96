"""The scene: the square with everything on it, and the shadow maps that light it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions
from pdc_sfm.scenes.render.light import COARSER, ShadowMap, shadow_map, sky_directions
from pdc_sfm.scenes.render.mesh import Mesh, MeshBuilder
from pdc_sfm.scenes.settings import SceneSettings
from pdc_sfm.scenes.town.blocks import build_ground, build_rows
from pdc_sfm.scenes.town.market import furnish
from pdc_sfm.scenes.town.visitors import visitors

_LAMP = np.array([1.0, 0.58, 0.24]) * 16.0  # sodium light


@dataclass
class Town:
    """A town square. `taken` lists what stands on it: (m, 3) x, y, radius."""

    mesh: Mesh
    taken: np.ndarray
    lamps: np.ndarray  # (k, 3)
    lamp_colors: np.ndarray  # (k, 3)
    sky_directions: np.ndarray  # (d, 3)
    sky_maps: list[ShadowMap]
    texel: float  # of the sun's shadows, metres
    _suns: dict[tuple[float, float], ShadowMap] = field(default_factory=dict)

    def visitors(self, conditions: Conditions, camera: Camera) -> Mesh | None:
        """People and cars of one picture."""
        if conditions.people + conditions.cars == 0:
            return None
        random = np.random.default_rng([conditions.seed, 5])
        return visitors(random, conditions.people, conditions.cars, camera.center, self.taken)

    def sun_map(self, conditions: Conditions) -> ShadowMap:
        """The town's shadows; drawn once per position of the sun."""
        key = (conditions.sun_azimuth, conditions.sun_elevation)
        if key not in self._suns:
            self._suns[key] = shadow_map(self.mesh, conditions.sun_direction, self.texel, fine=True)
        return self._suns[key]


def build_scene(settings: SceneSettings, lit: bool = True) -> Town:
    """Build the town of `settings.seed`, and the maps of its sky light (needed to render, not to plan)."""
    seed = settings.seed
    random = np.random.default_rng([seed, 1])
    b = MeshBuilder()
    build_ground(b)
    build_rows(b, random)
    taken, lamps = furnish(b, np.random.default_rng([seed, 2]))
    mesh = b.build()
    directions, texel = sky_directions(settings.sky_directions), settings.shadow_texel
    maps = [shadow_map(mesh, direction, COARSER * texel) for direction in directions] if lit else []
    return Town(mesh, taken, lamps, np.tile(_LAMP, (len(lamps), 1)), directions, maps, texel)
