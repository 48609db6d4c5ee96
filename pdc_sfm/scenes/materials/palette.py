"""Which function paints which material."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials import grounds, openings, things, walls
from pdc_sfm.scenes.materials.surface import FullAppearance, Material, Spots

_PAINTERS = {
    Material.PLASTER: walls.plaster,
    Material.BRICK: walls.brick,
    Material.ASHLAR: walls.ashlar,
    Material.STONE: walls.stone,
    Material.TIMBER: walls.timber,
    Material.TILES: walls.tiles,
    Material.WINDOW: openings.window,
    Material.DOOR: openings.door,
    Material.SHOP: openings.shop,
    Material.SHUTTER: openings.shutter,
    Material.SETTS: grounds.setts,
    Material.SLABS: grounds.slabs,
    Material.ROAD: grounds.road,
    Material.METAL: things.metal,
    Material.PLANKS: things.planks,
    Material.FABRIC: things.fabric,
    Material.LEAF: things.leaf,
    Material.BARK: things.bark,
    Material.SIGN: things.sign,
    Material.POSTER: things.poster,
    Material.WATER: things.water,
    Material.LANTERN: things.lantern,
    Material.PAINT: things.paint,
    Material.CLOTH: things.cloth,
    Material.CLOCK: things.clock,
    Material.PRODUCE: things.produce,
}


def paint(material: np.ndarray, spots: Spots) -> FullAppearance:
    """The look of n places, each of its own material (n,)."""
    n = len(spots)
    look = FullAppearance(
        np.zeros((n, 3), np.float32),
        np.zeros((n, 2), np.float32),
        np.zeros((n, 3), np.float32),
        np.zeros(n, np.float32),
        np.ones(n, np.float32),
    )
    for kind in np.unique(material):
        index = np.flatnonzero(material == kind)
        part = _PAINTERS[Material(kind)](spots.part(index))
        look.albedo[index] = np.clip(part.albedo, 0.01, 0.95)
        for name in ("slope", "glow", "mirror", "cavity"):
            value = getattr(part, name)
            if value is not None:
                getattr(look, name)[index] = value
    return look
