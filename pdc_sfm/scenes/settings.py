"""What the built-in scenes are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdc_sfm.settings import require

WorldKind = Literal["room", "object", "court"]  # of a world beside the town


@dataclass(frozen=True)
class SceneSettings:
    """Settings of a town. The same settings give the same pictures."""

    seed: int = 0  # of town, walk and weather
    width: int = 640  # pixels of an image
    height: int = 480  # pixels of an image
    database: int = 24  # day images with known poses, along a walk around the square
    day_queries: int = 6  # from other places, on other days
    night_queries: int = 6  # from other places, at night
    depth: bool = True  # write depth maps beside the images
    sky_directions: int = 34  # from which sky light is sampled; fewer are faster and noisier
    shadow_texel: float = 0.03  # metres: resolution of shadows

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed={self.seed} is not possible: it takes 0 or more")
        for name in ("width", "height"):
            value = getattr(self, name)
            require(64 <= value <= 4096, f"{name}={value} is not possible: it takes 64 to 4096 pixels")
        require(2 <= self.database <= 999, f"database={self.database} is not possible: it takes 2 to 999 images")
        count = self.sky_directions
        require(1 <= count <= 500, f"sky_directions={count} is not possible: it takes 1 to 500")
        texel = self.shadow_texel
        require(0.01 <= texel <= 1, f"shadow_texel={texel} is not possible: it takes 0.01 to 1 metres")
        for name in ("day_queries", "night_queries"):
            require(
                0 <= getattr(self, name) <= 999,
                f"{name}={getattr(self, name)} is not possible: it takes 0 to 999 images",
            )

    @property
    def total(self) -> int:
        """Images in all."""
        return self.database + self.day_queries + self.night_queries


@dataclass(frozen=True)
class WorldSettings:
    """A room, a court, or objects on a table. The same settings and photographs give the same pictures."""

    seed: int = 0  # of the world
    width: int = 640  # pixels of an image
    height: int = 480  # pixels of an image
    images: int = 16  # pictures taken
    views: int = 4  # pictures of each thing looked at, so that some overlap
    turn: float = 40.0  # degrees: half of the pictures are rolled by up to so much
    zoom: float = 2.5  # largest ratio of distances between views of one thing
    textures: int = 24  # pictures on its surfaces
    twin: float = 0.3  # share of worlds that have a look-alike next to them
    depth: bool = True  # write depth maps beside the images

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed={self.seed} is not possible: it takes 0 or more")
        for name in ("width", "height"):
            value = getattr(self, name)
            require(64 <= value <= 4096, f"{name}={value} is not possible: it takes 64 to 4096 pixels")
        require(2 <= self.images <= 999, f"images={self.images} is not possible: it takes 2 to 999")
        require(1 <= self.views <= 99, f"views={self.views} is not possible: it takes 1 to 99")
        require(0 <= self.turn <= 180, f"turn={self.turn} is not possible: it takes 0 to 180 degrees")
        require(1 <= self.zoom <= 6, f"zoom={self.zoom} is not possible: it takes 1 to 6")
        require(4 <= self.textures <= 500, f"textures={self.textures} is not possible: it takes 4 to 500")
        require(0 <= self.twin <= 1, f"twin={self.twin} is not possible: it is a share, 0 to 1")
