"""Estimates the hours and gigabytes of a large folder, from some of its pairs."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.demo.settings import PhotographSettings
from pdc_sfm.images import read_photograph

MATCH_BYTES = 5  # of the journal, a match (docs/scale.md)
FILES = 2.0  # times as much, with the two files that are made of the journal
SAMPLES = 5  # pairs that are timed, of neighbors in name all over the folder
LONGEST = 30.0  # seconds: with three pairs timed no more are
COARSE = 0.034  # of a pair's time, what the 256-pixel branch of retrieval takes: 15 ms beside 438 (one core, 400 x 267 pixels)
CODE = 0.25  # of an image's encoding, what retrieval's first stage takes: 256 x 256 of 512 x 512 pixels


@dataclasses.dataclass(frozen=True)
class Pace:
    """On this machine, and of these photographs."""

    encode: float  # seconds of an image
    pair: float  # seconds of a pair, the mean of those measured
    matches: float = 10_000.0  # of a pair, the mean (docs/scale.md has 2,800 to 38,400)
    slowest: float = 0.0  # seconds of a pair
    measured: int = 0  # pairs


@dataclasses.dataclass(frozen=True)
class MapPlan:
    """An estimate: matching, and finding pairs before it; reconstruction comes on top."""

    images: int
    pairs: int  # at most
    retrieved: int  # pairs that retrieval looks at in full,
    coarse: int  # and in its 256-pixel branch
    pace: Pace
    free: int  # bytes of the disk

    @property
    def hours(self) -> float:
        """Of one worker, for matching and for finding pairs."""
        pairs = self.pairs + self.retrieved / 2 + COARSE * self.coarse  # retrieval looks in one direction
        images = self.images * (1 + bool(self.retrieved) + CODE * bool(self.coarse))  # of each stage its own codes
        return (images * self.pace.encode + pairs * self.pace.pair) / 3600

    @property
    def gigabytes(self) -> float:
        """On the disk, if all pairs have as many matches as those measured."""
        return FILES * MATCH_BYTES * self.pace.matches * self.pairs / 1e9

    def __str__(self) -> str:
        timed = f", {self.pace.measured} measured, the slowest {self.pace.slowest:.2g} s" if self.pace.measured else ""
        line = (
            f"plan: {self.images:,} images, up to {self.pairs:,} pairs, about {_span(self.hours)} of matching here "
            f"({self.pace.pair:.2g} s a pair{timed}) before the reconstruction, up to {_figure(self.gigabytes)} GB of disk"
        )
        if self.gigabytes * 1e9 > self.free:
            line += (
                f" where {_figure(self.free / 1e9)} GB are free: make room, or set retrieved, neighbors and near lower"
            )
        return line


def make_plan(names: list[str], output: Path, settings: PhotographSettings, pace: Pace) -> MapPlan:
    """Of the images of a folder."""
    count = len(names)
    most = count * (count - 1) // 2
    there = next(place for place in (output.absolute(), *output.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if count <= settings.exhaustive:
        return MapPlan(count, most, 0, 0, pace, free)
    each = settings.retrieved + 2 * settings.neighbors + settings.near
    looked_at = count * min(count - 1, settings.retrieve.best)
    coarse = count * min(count - 1, settings.retrieve.candidates)
    if settings.retrieve.mode == "exhaustive":
        looked_at, coarse = 2 * most, 0
    return MapPlan(count, min(most, count * each), looked_at, coarse, pace, free)


def measure_pace(images: Path, names: list[str], settings: PhotographSettings, matcher: Any = None) -> Pace:
    """Times of neighbors in name, which mostly show the same, as pairs that are chosen do; what is done once is done before."""
    if matcher is None:
        from pdc_sfm.matcher import PairSettings, load_matcher

        s = settings.match
        chosen = PairSettings(s.dense, s.select, s.snap)
        matcher = load_matcher(s.weights, chosen, s.device, s.precision, s.codes)
    places = sorted({round(k * (len(names) - 2) / max(1, SAMPLES - 1)) for k in range(SAMPLES)})
    encodings, pairs, matches = [], [], []
    begun = time.monotonic()
    for k in (places[0], *places):  # the first twice
        codes = []
        for name in names[k : k + 2]:
            photograph, start = read_photograph(images / name), time.monotonic()
            codes.append(matcher.encode(photograph, name))
            encodings.append(time.monotonic() - start)
        start = time.monotonic()
        matches.append(len(matcher.match(*codes)))
        pairs.append(time.monotonic() - start)
        if len(pairs) > 3 and time.monotonic() - begun > LONGEST:
            break
    timed = pairs[1:]
    return Pace(_mean(encodings[2:]), _mean(timed), _mean(matches[1:]), max(timed), len(timed))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _span(hours: float) -> str:
    if hours < 1:
        return f"{max(1, round(60 * hours))} minutes"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"
