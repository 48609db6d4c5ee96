"""Styles of houses: what may be chosen, and a house drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.town.facade import WallSkin

PAINTS = (
    "#d3c19f",
    "#c8a78d",
    "#ddd5c4",
    "#b5baa6",
    "#c6b8a8",
    "#ccb27c",
    "#a9b2b8",
    "#bf9079",
    "#e0dacb",
    "#b3a28d",
    "#c6b5ae",
    "#a2ac9c",
)
BRICKS = ("#8c4a38", "#9a5a42", "#7d4236", "#a06a4c")
STONES = ("#b8ab93", "#a79c88", "#c2b59c", "#9d968a")
ROOFS = ("#7a4a39", "#845341", "#6b4438", "#655d58", "#8a5c47")
FRAMES = ("#e6e2d8", "#dcd8ca", "#6b4a33", "#e9e7e2", "#3f5a4a")
SHUTTERS = ("#4a5c52", "#63717b", "#6a443c", "#545c46", "#8a8d8e")
DOORS = ("#3c4f3f", "#5b2f28", "#2f3e52", "#5d4630", "#39332e")


@dataclass(frozen=True)
class House:
    """Sizes and surfaces of a house."""

    width: float
    depth: float
    ground: float  # height of the ground floor
    storey: float
    storeys: int  # above the ground floor
    bays: int
    wall: WallSkin
    stone: WallSkin
    roof: WallSkin
    roof_kind: str
    rise: float
    style: str  # of the windows' surrounds
    window: tuple[float, float]
    panes: tuple[int, int]
    arch: float
    frame_tint: np.ndarray
    shutter_tint: np.ndarray | None
    door_tint: np.ndarray
    shop: bool
    timber: bool
    seed: float

    @property
    def eaves(self) -> float:
        return self.ground + self.storey * self.storeys


def random_house(random: np.random.Generator, width: float) -> House:
    def one(options: Sequence[Any]) -> Any:
        return options[int(random.integers(len(options)))]

    seed = float(random.random())
    kind = random.choice(["plaster", "plaster", "plaster", "brick", "stone", "timber"])
    stone = WallSkin(Material.STONE, rgb(one(STONES)), (seed,))
    wall = {
        "plaster": WallSkin(Material.PLASTER, rgb(one(PAINTS)), (seed,)),
        "timber": WallSkin(Material.PLASTER, rgb(one(("#e3dccb", "#e0d6c2", "#d9c49a"))), (seed,)),
        "brick": WallSkin(Material.BRICK, rgb(one(BRICKS)), (seed,)),
        "stone": WallSkin(
            Material.ASHLAR, rgb(one(STONES)), (seed, random.uniform(0.55, 0.8), random.uniform(0.28, 0.38))
        ),
    }[str(kind)]
    timber = kind == "timber"
    shutters_too = not timber and random.random() < 0.35
    window = (random.uniform(0.95, 1.15), random.uniform(1.5, 1.9)) if not timber else (0.95, random.uniform(1.2, 1.4))
    bay = window[0] + (window[0] + 0.75 if shutters_too else random.uniform(0.85, 1.3))
    arch = 0.0 if timber or random.random() < 0.6 else (window[0] / 2 if random.random() < 0.4 else 0.16)
    style = "sill" if timber else str(random.choice(["plain", "hood", "plain", "sill"]))
    if arch > 0:
        style = str(random.choice(["plain", "keystone"]))
    storey = random.uniform(2.75, 3.25)
    roof_kind = str(random.choice(["along", "along", "across", "stepped"] if width < 9.5 else ["along"]))
    return House(
        width,
        random.uniform(8, 10),
        random.uniform(3.4, 3.9),
        storey,
        int(random.integers(2, 4)),
        max(2, int(width / bay)),
        wall,
        stone,
        WallSkin(Material.TILES, rgb(one(ROOFS)), (seed,)),
        "across" if timber and width < 9.5 else roof_kind,
        random.uniform(2.6, 3.4) if roof_kind == "along" else width * random.uniform(0.42, 0.55),
        style,
        window,
        (2, int(random.integers(2, 5))),
        arch,
        rgb(one(FRAMES)),
        rgb(one(SHUTTERS)) if shutters_too else None,
        rgb(one(DOORS)),
        random.random() < 0.6,
        timber,
        seed,
    )
