"""Settings of the demo and of a map of photographs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.media.panoramas import PanoramaSettings
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.scenes.settings import SceneSettings
from pdc_sfm.settings import load_settings, require

SIZES = (
    "scene.database=24",
    "scene.day_queries=8",
    "scene.night_queries=8",
    "match.tracks.max_keypoints=8192",
)


def to_be_matched() -> RetrievalSettings:
    """Retrieval without the full network, which matches what is retrieved anyway."""
    return RetrievalSettings(best=0)


@dataclasses.dataclass(frozen=True)
class DemoSettings:
    """The built-in scene from pictures to poses."""

    scene: SceneSettings = dataclasses.field(default_factory=SceneSettings)
    neighbors: int = 8  # database images matched with each database image: the nearest that look the same way
    max_angle: float = 60.0  # degrees between their viewing directions
    retrieved: int = 8  # database images matched with each query
    match: MatchingSettings = dataclasses.field(default_factory=MatchingSettings)
    retrieve: RetrievalSettings = dataclasses.field(default_factory=to_be_matched)
    triangulation: TriangulationSettings = dataclasses.field(default_factory=TriangulationSettings)
    localization: LocalizationSettings = dataclasses.field(default_factory=LocalizationSettings)
    sift: bool = True  # the same by SIFT, for comparison
    report: bool = True  # write report.html at the end

    def __post_init__(self) -> None:
        require(self.neighbors >= 1, f"neighbors={self.neighbors} must be at least 1")
        require(0 < self.max_angle <= 180, f"max_angle={self.max_angle} must be between 0 and 180 degrees")
        require(self.retrieved >= 1, f"retrieved={self.retrieved} must be at least 1")


@dataclasses.dataclass(frozen=True)
class PhotographSettings:
    """A folder of photographs from pictures to a model."""

    exhaustive: int = 60  # up to so many photographs, all pairs are matched; beyond that, for each photograph
    retrieved: int = 20  # those that retrieval expects to share most matches,
    neighbors: int = 5  # the next by name, and the next by time (EXIF),
    near: int = 10  # and the nearest by GPS (EXIF)
    match: MatchingSettings = dataclasses.field(default_factory=MatchingSettings)
    retrieve: RetrievalSettings = dataclasses.field(default_factory=to_be_matched)
    reconstruction: ReconstructionSettings = dataclasses.field(default_factory=ReconstructionSettings)
    panoramas: PanoramaSettings = dataclasses.field(default_factory=PanoramaSettings)
    sift: bool = False  # the same pairs by SIFT, for comparison
    report: bool = True  # write report.html at the end

    def __post_init__(self) -> None:
        require(self.neighbors >= 0, f"neighbors={self.neighbors} must not be negative")
        require(self.near >= 0, f"near={self.near} must not be negative")
        require(self.exhaustive >= 2, f"exhaustive={self.exhaustive} must be at least 2")
        require(self.retrieved >= 1, f"retrieved={self.retrieved} must be at least 1")


class MatchingRun(Protocol):
    """Settings of a run that matches and retrieves."""

    @property
    def match(self) -> MatchingSettings: ...
    @property
    def retrieve(self) -> RetrievalSettings: ...


def retrieval_settings(settings: MatchingRun) -> RetrievalSettings:
    """Retrieval with the network that matches, unless it has its own."""
    own = settings.retrieve
    return dataclasses.replace(own, weights=own.weights or settings.match.weights, device=settings.match.device)


def demo_settings(config: Path | str | None = None, words: Iterable[str] = ()) -> DemoSettings:
    """Settings of the demo: its own sizes, unless a file or `key=value` words say otherwise."""
    return load_settings(DemoSettings, config, words, default=load_settings(DemoSettings, None, SIZES))
