"""A picture of the town with its depth: cast rays, paint, light, develop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pdc_sfm.scenes.materials.noise import hashed, value_noise
from pdc_sfm.scenes.materials.palette import paint
from pdc_sfm.scenes.materials.surface import FullAppearance, Spots
from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions
from pdc_sfm.scenes.render.light import COARSER, ShadowMap, contact_shade, lamp_light, shadow_map, sky_light
from pdc_sfm.scenes.render.mesh import Mesh
from pdc_sfm.scenes.render.photo import develop
from pdc_sfm.scenes.render.sampling import Sampling, is_sky, sample_view
from pdc_sfm.scenes.render.sky import sky_radiance

_CHUNK = 60_000  # places shaded together, so that intermediate arrays stay in cache


class Renderable(Protocol):
    """What can be rendered: surfaces that stay, those that move, and light."""

    mesh: Mesh
    lamps: np.ndarray  # (k, 3)
    lamp_colors: np.ndarray  # (k, 3)
    sky_directions: np.ndarray  # (d, 3)
    sky_maps: list[ShadowMap]
    texel: float  # of the sun's shadows, metres

    def visitors(self, conditions: Conditions, camera: Camera) -> Mesh | None:
        """What moves, in one picture."""

    def sun_map(self, conditions: Conditions) -> ShadowMap:
        """The shadows of what stays."""


@dataclass(frozen=True)
class Rendering:
    """A picture and what it shows."""

    image: np.ndarray  # (H, W, 3) uint8 RGB
    depth: np.ndarray  # (H, W) float32 metres along the optical axis, 0 in the sky
    moving: np.ndarray  # (H, W) bool: people and cars, which other pictures show elsewhere or not at all
    camera: Camera


def render_image(scene: Renderable, camera: Camera, conditions: Conditions, seed: int = 0) -> Rendering:
    """Take one picture. `seed` makes its noise; everything else follows from scene, camera and conditions."""
    moving = scene.visitors(conditions, camera)
    mesh = scene.mesh if moving is None else scene.mesh.joined(moving)
    shadows = _Shadows(scene, moving, conditions)
    sampling = sample_view(mesh, camera)
    light = np.zeros((camera.width * camera.height, 3), np.float32)
    for start in range(0, len(sampling.pixel), _CHUNK):
        part = slice(start, start + _CHUNK)
        color = _shade(scene, mesh, camera, conditions, shadows, sampling, part) * sampling.weight[part, None]
        for channel in range(3):
            light[:, channel] += np.bincount(sampling.pixel[part], color[:, channel], len(light)).astype(np.float32)
    image = develop(light.reshape(camera.height, camera.width, 3), conditions, seed)
    depth = np.where(np.isfinite(sampling.center_depth), sampling.center_depth, 0).astype(np.float32)
    return Rendering(image, depth, sampling.center_quad >= len(scene.mesh), camera)


class _Shadows:
    """Shadow maps of one picture: the town's, and coarser ones of those who move through it."""

    def __init__(self, scene: Renderable, moving: Mesh | None, conditions: Conditions) -> None:
        self.sun = [scene.sun_map(conditions)] if conditions.sun_strength > 0 else []
        self.contact = []
        if moving is not None and len(moving):
            if conditions.sun_strength > 0:
                self.sun.append(shadow_map(moving, conditions.sun_direction, scene.texel, fine=True))
            self.contact = [
                shadow_map(moving, direction, COARSER * scene.texel) for direction in scene.sky_directions[4::5]
            ]


def _shade(
    scene: Renderable,
    mesh: Mesh,
    camera: Camera,
    conditions: Conditions,
    shadows: _Shadows,
    sampling: Sampling,
    part: slice,
) -> np.ndarray:
    """Colors (n, 3) of a slice of the samples."""
    quad, rays, depth = sampling.quad[part], sampling.rays[part], sampling.depth[part]
    view = (rays / np.linalg.norm(rays, axis=1, keepdims=True)).astype(np.float32)
    color = np.zeros((len(quad), 3), np.float32)
    sky = is_sky(quad) | ~np.isfinite(depth)
    if sky.any():
        color[sky] = sky_radiance(view[sky], conditions)
    solid = np.flatnonzero(~sky)
    if len(solid) == 0:
        return color
    quad, depth, view = quad[solid], depth[solid], view[solid]
    points = camera.center + rays[solid] * depth[:, None]
    spots, axes = spots_at(mesh, quad, points, view, depth / camera.focal, conditions.night)
    look = paint(mesh.material[quad], spots)
    normal = spots.normal - look.slope[:, :1] * axes[:, 0] - look.slope[:, 1:] * axes[:, 1]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    points = points.astype(np.float32)
    irradiance = _irradiance(scene, conditions, shadows, points, normal, spots.normal)
    lit = look.albedo * irradiance * (look.cavity / np.float32(np.pi))[:, None] + look.glow * conditions.lamps
    lit = _reflect(lit, look, normal, view, conditions)
    color[solid] = _haze(lit, depth, conditions)
    return color


def spots_at(
    mesh: Mesh, quad: np.ndarray, points: np.ndarray, view: np.ndarray, pixel: np.ndarray, night: bool
) -> tuple[Spots, np.ndarray]:
    """Texture coordinates and normals at (n, 3) points; also the texture's axes (n, 2, 3)."""
    axes = mesh.uv_axes[quad].astype(np.float32)
    uv = np.einsum("ni,nki->nk", (points - mesh.uv_origin[quad]).astype(np.float32), axes)
    normal = mesh.normal[quad]
    curved = np.flatnonzero(mesh.curve[quad].any((1, 2)))
    if len(curved):
        bend = mesh.curve[quad[curved]]
        smooth = np.einsum("nij,nj->ni", bend[..., :3], points[curved]) + bend[..., 3]
        normal[curved] = smooth / np.maximum(np.linalg.norm(smooth, axis=1, keepdims=True), 1e-9)
    normal = normal.astype(np.float32)
    facing = np.einsum("ni,ni->n", normal, view)
    normal[mesh.two_sided[quad] & (facing > 0)] *= -1
    # a slanted surface stretches the pixel one way only: the mean of both ways keeps detail and little aliasing
    slant = np.clip(np.abs(facing), 0.06, 1)
    width = (pixel / np.sqrt(slant)).astype(np.float32)
    spots = Spots(
        uv[:, 0],
        uv[:, 1],
        width,
        mesh.tint[quad].astype(np.float32),
        mesh.params[quad].astype(np.float32),
        points[:, 2].astype(np.float32),
        view,
        normal,
        night,
    )
    return spots, axes


def _irradiance(
    scene: Renderable,
    conditions: Conditions,
    shadows: _Shadows,
    points: np.ndarray,
    normal: np.ndarray,
    flat: np.ndarray,
) -> np.ndarray:
    radiance = sky_radiance(scene.sky_directions, conditions, hills=False)
    total, open_sky = sky_light(scene.sky_maps, radiance, points, normal)
    zenith = radiance.mean(0)
    sun = conditions.sun_strength * np.asarray(conditions.sun_color, np.float32)
    # light sent on by the ground and the houses opposite, warm and weak
    bounce = (zenith * 1.6 + sun * max(conditions.sun_direction[2], 0.1) * 0.5) * np.array(
        [0.32, 0.29, 0.25], np.float32
    )
    below = 0.55 - 0.45 * normal[:, 2]
    total += (below * (0.25 + 0.75 * np.clip(open_sky * 2, 0, 1)))[:, None] * bounce
    if shadows.contact:
        total *= contact_shade(shadows.contact, points, normal)[:, None]
    if conditions.sun_strength > 0:
        direction = conditions.sun_direction.astype(np.float32)
        cosine = np.maximum(normal @ direction, 0) * (flat @ direction > 0)
        lit = np.flatnonzero(cosine > 0)
        for shadow in shadows.sun:
            cosine[lit] *= shadow.lit(points[lit], flat[lit])
        total += cosine[:, None] * sun
    if conditions.night:
        total += lamp_light(scene.lamps, scene.lamp_colors * conditions.lamps, points, normal)
    return total


def _reflect(
    lit: np.ndarray, look: FullAppearance, normal: np.ndarray, view: np.ndarray, conditions: Conditions
) -> np.ndarray:
    """Add what shiny places mirror: the sky above the roofs, the houses opposite below."""
    shiny = np.flatnonzero(look.mirror > 0.001)
    if len(shiny) == 0:
        return lit
    normal, view = normal[shiny], view[shiny]
    cosine = np.einsum("ni,ni->n", normal, view)
    mirrored = view - 2 * cosine[:, None] * normal
    straight = look.mirror[shiny]
    fresnel = straight + (1 - straight) * np.minimum(straight * 8, 1) * (1 - np.minimum(np.abs(cosine), 1)) ** 5
    above = np.maximum(mirrored[:, 2:], 0)
    sky = sky_radiance(np.concatenate([mirrored[:, :2], above], 1), conditions, hills=False)
    horizon = np.asarray(conditions.horizon, np.float32)
    houses = horizon * np.array([0.40, 0.37, 0.33], np.float32)
    azimuth = np.arctan2(mirrored[:, 1], mirrored[:, 0]) * 9
    skyline = 0.40 + 0.12 * value_noise(np.floor(azimuth), np.zeros_like(azimuth), 77)
    share = np.clip((mirrored[:, 2] - skyline) * 12, 0, 1)[:, None]
    seen = houses * (0.75 + 0.5 * hashed(np.floor(azimuth), 0, 78))[:, None] * (1 - share) + sky * share
    lit[shiny] = lit[shiny] * (1 - fresnel)[:, None] + fresnel[:, None] * seen
    return lit


def _haze(color: np.ndarray, depth: np.ndarray, conditions: Conditions) -> np.ndarray:
    """Air between: faint over the square, noticeable down the streets."""
    amount = (1 - np.exp(-np.maximum(depth - 8, 0) / 900))[:, None].astype(np.float32)
    return color * (1 - amount) + np.asarray(conditions.horizon, np.float32) * amount
