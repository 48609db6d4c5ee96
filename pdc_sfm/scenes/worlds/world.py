"""A world of pictured surfaces, and pictures of it: the same rays, light and camera as the town's, other materials."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions
from pdc_sfm.scenes.render.light import ShadowMap, lamp_light, shadow_map, sky_directions, sky_light
from pdc_sfm.scenes.render.mesh import Mesh
from pdc_sfm.scenes.render.photo import develop
from pdc_sfm.scenes.render.renderer import Rendering, spots_at
from pdc_sfm.scenes.render.sampling import Sampling, is_sky, sample_view
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.worlds.skins import Textures

SOFT = 14  # directions from which soft light comes
_TEXELS = 220  # along a soft map's side; the sun's has five times as many
_CHUNK = 60_000  # places shaded together
_SHARP = 40.0  # exponent of highlights


@dataclass
class World:
    """Everything that stands still. Light comes in from above as if there were no ceiling: `shading` casts shadows."""

    mesh: Mesh
    shading: Mesh  # the part of it that keeps light off
    textures: Textures
    lamps: np.ndarray  # (k, 3)
    lamp_colors: np.ndarray  # (k, 3)
    center: np.ndarray  # (3,) of what the shadow maps cover
    radius: float
    backdrop: tuple[float, float, float]  # color beyond everything, brighter above
    visitors: list[Mesh] = field(default_factory=list)  # things of single pictures: number of the shot's conditions
    _maps: list[ShadowMap] = field(default_factory=list)
    _suns: dict[tuple[float, float], ShadowMap] = field(default_factory=dict)

    def soft_maps(self) -> list[ShadowMap]:
        """Drawn when first needed."""
        if not self._maps:
            texel = 2 * self.radius / _TEXELS
            self._maps = [
                shadow_map(self.shading, direction, texel, center=self.center, radius=self.radius)
                for direction in sky_directions(SOFT)
            ]
        return self._maps

    def sun_map(self, conditions: Conditions) -> ShadowMap:
        key = (conditions.sun_azimuth, conditions.sun_elevation)
        if key not in self._suns:
            texel = 2 * self.radius / (5 * _TEXELS)
            direction = conditions.sun_direction
            self._suns[key] = shadow_map(self.shading, direction, texel, True, self.center, self.radius)
        return self._suns[key]


def picture_of(world: World, shot: Shot) -> Rendering:
    """Take one picture. The shot's conditions name its visitor, if any, by `people` (counted from 1)."""
    camera, conditions = shot.camera, shot.conditions
    visitor = world.visitors[conditions.people - 1] if conditions.people else None
    mesh = world.mesh if visitor is None else world.mesh.joined(visitor)
    sampling = sample_view(mesh, camera)
    light = np.zeros((camera.width * camera.height, 3), np.float32)
    for start in range(0, len(sampling.pixel), _CHUNK):
        part = slice(start, start + _CHUNK)
        color = _shade(world, mesh, camera, conditions, sampling, part) * sampling.weight[part, None]
        for channel in range(3):
            light[:, channel] += np.bincount(sampling.pixel[part], color[:, channel], len(light)).astype(np.float32)
    image = develop(light.reshape(camera.height, camera.width, 3), conditions, shot.seed)
    depth = np.where(np.isfinite(sampling.center_depth), sampling.center_depth, 0).astype(np.float32)
    return Rendering(image, depth, sampling.center_quad >= len(world.mesh), camera)


def _shade(
    world: World, mesh: Mesh, camera: Camera, conditions: Conditions, sampling: Sampling, part: slice
) -> np.ndarray:
    """Colors (n, 3) of a slice of the samples."""
    quad, rays, depth = sampling.quad[part], sampling.rays[part], sampling.depth[part]
    view = (rays / np.linalg.norm(rays, axis=1, keepdims=True)).astype(np.float32)
    beyond = is_sky(quad) | ~np.isfinite(depth)
    color = np.asarray(world.backdrop, np.float32) * (0.8 + 0.4 * view[:, 2:])
    solid = np.flatnonzero(~beyond)
    if len(solid) == 0:
        return color
    quad, depth, view = quad[solid], depth[solid], view[solid]
    points = camera.center + rays[solid] * depth[:, None]
    spots, _ = spots_at(mesh, quad, points, view, depth / camera.focal, conditions.night)
    albedo = spots.tint * world.textures.color(spots.params, spots.u, spots.v, spots.pixel)
    irradiance, highlight = _light(world, conditions, points.astype(np.float32), spots.normal, view)
    gloss, glow = spots.params[:, 3:4], spots.params[:, 4:5]
    color[solid] = albedo * (irradiance / np.float32(np.pi) + glow) + gloss * highlight
    return color


def _light(
    world: World, conditions: Conditions, points: np.ndarray, normal: np.ndarray, view: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What arrives at places (n, 3), and what a shiny one sends to the viewer."""
    up = sky_directions(SOFT)[:, 2:]
    zenith, horizon = np.asarray(conditions.zenith), np.asarray(conditions.horizon)
    radiance = horizon * (1 - up) + zenith * up
    total, open_sky = sky_light(world.soft_maps(), radiance, points, normal)
    bounce = radiance.mean(0).astype(np.float32) * (0.9 - 0.3 * normal[:, 2:])  # sent on by floor and walls
    total += bounce * (0.35 + 0.65 * np.clip(2 * open_sky, 0, 1))[:, None]
    highlight = np.zeros_like(total)
    if conditions.sun_strength > 0:
        direction = conditions.sun_direction.astype(np.float32)
        cosine = np.maximum(normal @ direction, 0)
        lit = np.flatnonzero(cosine > 0)
        cosine[lit] *= world.sun_map(conditions).lit(points[lit], normal[lit])
        sun = conditions.sun_strength * np.asarray(conditions.sun_color, np.float32)
        total += cosine[:, None] * sun
        highlight += (_mirrors(normal, view, direction) * (cosine > 0))[:, None] * sun
    if conditions.lamps > 0:
        strength = world.lamp_colors * conditions.lamps
        total += lamp_light(world.lamps, strength, points, normal)
        for lamp, color in zip(world.lamps.astype(np.float32), strength.astype(np.float32)):
            toward = lamp - points
            distance = np.linalg.norm(toward, axis=1, keepdims=True)
            highlight += (_mirrors(normal, view, toward / distance) / distance[:, 0] ** 2)[:, None] * color
    return total, highlight


def _mirrors(normal: np.ndarray, view: np.ndarray, light: np.ndarray) -> np.ndarray:
    """How much of a light's highlight a viewer looking along `view` sees (Blinn's half-way vector)."""
    half = light - view
    half /= np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-6)
    return np.maximum(np.einsum("ni,ni->n", half, normal), 0) ** np.float32(_SHARP)
