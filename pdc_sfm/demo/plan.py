"""What a large folder will take, in hours and gigabytes, before it begins: measured on two of its photographs."""

from __future__ import annotations

import dataclasses
import shutil
import time
from pathlib import Path
from typing import Any

from pdc_sfm.demo.settings import PhotographSettings
from pdc_sfm.images import read_photograph

MATCH_BYTES = 20  # of the journal, a match (docs/scale.md)
USUAL_MATCHES = 10_000  # of a pair; of most it has fewer (docs/scale.md)
FILES = 1.5  # times as much, with the two files that are made of the journal


@dataclasses.dataclass(frozen=True)
class Pace:
    """Seconds on this machine."""

    encode: float  # of an image
    pair: float  # of a pair


@dataclasses.dataclass(frozen=True)
class MapPlan:
    """An estimate: matching, and finding pairs before it; reconstruction comes on top."""

    images: int
    pairs: int  # at most
    retrieved: int  # pairs that retrieval looks at in full
    pace: Pace
    free: int  # bytes of the disk

    @property
    def hours(self) -> float:
        """Of one worker."""
        looked_at = self.retrieved / 2  # in one direction
        return (self.images * self.pace.encode * 2 + (self.pairs + looked_at) * self.pace.pair) / 3600

    @property
    def gigabytes(self) -> float:
        """On the disk, at most."""
        return FILES * MATCH_BYTES * USUAL_MATCHES * self.pairs / 1e9

    def __str__(self) -> str:
        line = (
            f"plan: {self.images:,} images, up to {self.pairs:,} pairs, about {_span(self.hours)} of matching here "
            f"({self.pace.pair:.2g} s a pair) before the reconstruction, up to {self.gigabytes:.2g} GB of disk"
        )
        if self.gigabytes * 1e9 > self.free:
            line += f" where {self.free / 1e9:.2g} GB are free: make room, or set retrieved, neighbors and near lower"
        return line


def make_plan(names: list[str], output: Path, settings: PhotographSettings, pace: Pace) -> MapPlan:
    """Of the images of a folder."""
    count = len(names)
    most = count * (count - 1) // 2
    there = next(place for place in (output.absolute(), *output.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if count <= settings.exhaustive:
        return MapPlan(count, most, 0, pace, free)
    each = settings.retrieved + 2 * settings.neighbors + settings.near
    looked_at = count * min(count - 1, max(settings.retrieve.best, settings.retrieved))
    return MapPlan(count, min(most, count * each), looked_at, pace, free)


def measure_pace(images: Path, names: list[str], settings: PhotographSettings, matcher: Any = None) -> Pace:
    """Seconds of the network for two photographs; what is done once is done before."""
    if matcher is None:
        from pdc_sfm.matcher import PairSettings, load_matcher

        s = settings.match
        chosen = PairSettings(s.dense, s.select, s.snap)
        matcher = load_matcher(s.weights, chosen, s.device, s.precision, s.codes)
    photographs = [read_photograph(images / name) for name in names[:2]]
    codes = [matcher.encode(photograph, name) for photograph, name in zip(photographs, names)]
    matcher.match(*codes)
    start = time.monotonic()
    codes[1] = matcher.encode(photographs[1], names[1])
    encoded = time.monotonic()
    matcher.match(*codes)
    return Pace(encoded - start, time.monotonic() - encoded)


def _span(hours: float) -> str:
    if hours < 1:
        return f"{max(1, round(60 * hours))} minutes"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"
