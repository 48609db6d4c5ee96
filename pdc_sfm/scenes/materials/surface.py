"""What a material is told about the places it is seen at, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np


class Material(IntEnum):
    """What a surface is made of."""

    PLASTER = 0
    BRICK = 1
    ASHLAR = 2
    STONE = 3
    TIMBER = 4
    WINDOW = 5
    DOOR = 6
    SHOP = 7
    TILES = 8
    SETTS = 9
    SLABS = 10
    METAL = 11
    PLANKS = 12
    FABRIC = 13
    LEAF = 14
    BARK = 15
    SIGN = 16
    POSTER = 17
    WATER = 18
    LANTERN = 19
    PAINT = 20
    CLOTH = 21
    CLOCK = 22
    PRODUCE = 23
    SHUTTER = 24
    ROAD = 25


@dataclass
class Spots:
    """n places on surfaces of one material, seen from one camera."""

    u: np.ndarray  # (n,) float32 metres along the texture's axes
    v: np.ndarray
    pixel: np.ndarray  # (n,) width of a pixel on the surface, metres
    tint: np.ndarray  # (n, 3)
    params: np.ndarray  # (n, PARAMETERS)
    height: np.ndarray  # (n,) above the ground
    view: np.ndarray  # (n, 3) unit, from the camera to the place
    normal: np.ndarray  # (n, 3) unit
    night: bool

    def __len__(self) -> int:
        return len(self.u)

    def part(self, index: np.ndarray) -> Spots:
        return replace(self, **{f.name: getattr(self, f.name)[index] for f in fields(self) if f.name != "night"})


@dataclass
class Appearance:
    """How n places look: what they reflect, their tilt, what they emit, and how much of a mirror they are."""

    albedo: np.ndarray  # (n, 3) linear
    slope: np.ndarray | None = None  # (n, 2) dh/du, dh/dv of the relief too fine for geometry
    glow: np.ndarray | None = None  # (n, 3) light of its own
    mirror: np.ndarray | None = None  # (n,) reflectance straight on; Fresnel raises it towards grazing
    cavity: np.ndarray | None = None  # (n,) light that reaches into the relief, 1 open


@dataclass
class FullAppearance:
    """An `Appearance` in full: what a painter leaves out is flat, dark, dull and open."""

    albedo: np.ndarray
    slope: np.ndarray
    glow: np.ndarray
    mirror: np.ndarray
    cavity: np.ndarray
