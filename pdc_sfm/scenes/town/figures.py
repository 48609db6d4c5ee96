"""People: the bronze one on the fountain, and those who walk by."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder


def figure(
    b: MeshBuilder,
    frame: Frame,
    scale: float,
    tints: tuple,
    material: Material,
    seed: float,
    stride: float = 0.12,
    raised: bool = False,
    coat_length: float = 0.0,
    bag: bool = False,
) -> None:
    """A standing or walking person facing local +x, 1.75 m at scale 1. tints: coat, legs, skin, hair."""
    coat, legs, skin, hair = tints
    body = _Body(b, frame, scale, material, seed)
    for side, forward in ((1, stride), (-1, -stride)):
        y = 0.085 * side
        lift = 0.05 * max(-forward, 0) / 0.3
        knee = (0.035 + 0.5 * forward, y, 0.49)
        body.limb((forward, y, 0.07 + lift), knee, 0.05, 0.062, legs)
        body.limb(knee, (0, y * 0.95, 0.95), 0.062, 0.09, legs)
        body.lump(knee, (0.062, 0.062, 0.065), legs)
        body.lump((forward + 0.05, y, 0.045 + lift), (0.125, 0.045, 0.045), hair * 0.4)
        shoulder = np.array((0, 0.165 * side, 1.405))
        if raised and side > 0:
            hand, elbow = np.array((0.3, 0.3, 1.8)), np.array((0.18, 0.29, 1.5))
        else:
            hand = np.array((-0.9 * forward + 0.1, 0.215 * side, 0.86))
            elbow = np.array((-0.45 * forward - 0.04, 0.22 * side, 1.13))
        body.limb(shoulder, elbow, 0.056, 0.045, coat)
        body.limb(elbow, hand, 0.045, 0.036, coat)
        body.lump(elbow, (0.046, 0.046, 0.05), coat)
        body.lump(shoulder, (0.062, 0.062, 0.062), coat)
        body.lump(hand, (0.048, 0.03, 0.06), skin)
    hem = 0.93 - coat_length
    trunk = [
        (hem, 0.115 + 0.08 * coat_length, 0.155 + 0.06 * coat_length),
        (0.97, 0.115, 0.16),
        (1.1, 0.098, 0.135),
        (1.24, 0.112, 0.152),
        (1.36, 0.108, 0.172),
        (1.43, 0.09, 0.155),
        (1.48, 0.066, 0.10),
        (1.51, 0.055, 0.062),
    ]
    b.loft(frame, [(scale * z, scale * x, scale * y) for z, x, y in trunk], material, coat, (seed,))
    body.limb((0, 0, 1.47), (0.015, 0, 1.58), 0.05, 0.046, skin)
    body.lump((0.025, 0, 1.64), (0.086, 0.066, 0.112), skin)
    body.lump((-0.024, 0, 1.68), (0.082, 0.074, 0.088), hair)
    if bag:
        b.box(
            frame,
            (-0.13 * scale, 0.24 * scale, 0.5 * scale),
            (0.17 * scale, 0.34 * scale, 0.78 * scale),
            Material.CLOTH,
            legs * 1.4,
            (seed,),
        )


class _Body:
    """Limbs and lumps of one figure."""

    def __init__(self, b: MeshBuilder, frame: Frame, scale: float, material: Material, seed: float) -> None:
        self.b, self.frame, self.scale, self.look = b, frame, scale, (material, seed)

    def limb(self, start: ArrayLike, end: ArrayLike, r0: float, r1: float, tint: np.ndarray) -> None:
        """A tapered round piece."""
        low, high = np.asarray(start, float) * self.scale, np.asarray(end, float) * self.scale
        length = float(np.linalg.norm(high - low))
        up = (high - low) / length
        side = np.cross([1.0, 0.013, 0.017], up)
        side /= np.linalg.norm(side)
        local = np.stack([np.cross(side, up), side, up])
        self.b.cylinder(
            Frame(self.frame.to_world(low), local @ self.frame.axes),
            (r0 * self.scale, r1 * self.scale),
            (0, length),
            self.look[0],
            tint,
            (self.look[1],),
            12,
            caps="+-",
        )

    def lump(self, center: ArrayLike, radii: ArrayLike, tint: np.ndarray) -> None:
        self.b.ellipsoid(
            self.frame,
            np.asarray(center) * self.scale,
            np.asarray(radii) * self.scale,
            self.look[0],
            tint,
            (self.look[1],),
            12,
            8,
        )
