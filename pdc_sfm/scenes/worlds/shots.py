"""Where a world is photographed from: several views of each thing that is worth one, and the light of each picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import WorldSettings

TRIES = 60
APART = 1000.0  # metres between a world and its twin: neither sees the other


@dataclass(frozen=True)
class Focus:
    """Something to look at, and from where: angles in radians, distances in metres."""

    at: np.ndarray  # (3,)
    azimuth: float  # of the middle of the places to look from
    spread: float  # about it
    elevation: tuple[float, float]
    distance: tuple[float, float]


def views_of(
    focus: Focus, settings: WorldSettings, free: Callable[[np.ndarray], bool], random: np.random.Generator
) -> list[Camera]:
    """Cameras around a thing: up to 50 degrees apart as a rule, at distances within `zoom`, now and then rolled."""
    azimuth = focus.azimuth + random.uniform(-1, 1) * focus.spread
    near, far = focus.distance
    middle = np.exp(random.uniform(np.log(near), np.log(far)))
    turns = np.radians(settings.turn) * random.uniform(-1, 1, settings.views) * (random.random() < 0.5)
    upright = random.random() < 0.25
    cameras = []
    for turn in turns:
        for _ in range(TRIES):
            angle = azimuth + np.clip(random.normal(0, 0.35), -1, 1) * min(focus.spread, 1.0)
            height = random.uniform(*focus.elevation)
            away = float(np.clip(middle * settings.zoom ** random.uniform(-0.5, 0.5), near, far))
            toward = np.array([np.cos(height) * np.cos(angle), np.cos(height) * np.sin(angle), np.sin(height)])
            eye = focus.at + away * toward
            if free(eye):
                break
        else:
            continue
        size = (settings.height, settings.width) if upright else (settings.width, settings.height)
        focal = max(size) * random.uniform(0.7, 1.1)
        target = focus.at + random.normal(0, 0.08 * away, 3)
        cameras.append(Camera.looking(eye, target, size, focal, float(turn + random.normal(0, 0.06))))
    return cameras


def plan(
    foci: list[Focus],
    settings: WorldSettings,
    free: Callable[[np.ndarray], bool],
    visitors: int,
    numbers: range,
    random: np.random.Generator,
) -> list[Shot]:
    """Pictures with these numbers, `views` of each focus in turn; fewer if no place is found for them."""
    lights = _lights(random)
    shots: list[Shot] = []
    for attempt in range(50 * len(numbers)):
        cameras = views_of(foci[attempt % len(foci)], settings, free, random)
        for number, camera in zip(numbers[len(shots) :], cameras):
            light = lights[0] if random.random() < 0.6 else lights[int(random.integers(len(lights)))]
            conditions = _snapshot(light, visitors, random)
            shots.append(Shot("db", number, camera, conditions, int(random.integers(2**31))))
        if len(shots) == len(numbers):
            break
    return shots


def shares(settings: WorldSettings, random: np.random.Generator) -> list[range]:
    """The numbers of the pictures of a world, and of its twin if it has one."""
    last = settings.images + 1
    if random.random() >= settings.twin or settings.images < 4:
        return [range(1, last)]
    return [range(1, last // 2 + 1), range(last // 2 + 1, last)]


def _lights(random: np.random.Generator) -> list[Conditions]:
    """The hours of one world: day through a window, a dull day, lamps in the evening, a dim lamp alone."""
    azimuth, elevation = random.uniform(0, 360), random.uniform(25, 75)
    warm = (1.0, 0.82, 0.6)
    day = Conditions(
        "day", 1, azimuth, elevation, random.uniform(0.5, 2.5), zenith=(0.5, 0.5, 0.52), horizon=(0.4, 0.4, 0.4)
    )
    dull = replace(day, name="dull", sun_strength=0.0, zenith=(0.7, 0.72, 0.76), horizon=(0.5, 0.5, 0.52))
    lamp = Conditions(
        "lamp", 2, azimuth + 90, 60, 0.5, warm, (0.18, 0.15, 0.11), (0.14, 0.11, 0.08), lamps=1.0, noise=0.008
    )
    dim = replace(
        lamp, name="dim", sun_strength=0.0, zenith=(0.05, 0.045, 0.04), horizon=(0.04, 0.035, 0.03), noise=0.016
    )
    lights = [day, dull, lamp, dim]
    random.shuffle(lights)
    return lights


def _snapshot(base: Conditions, visitors: int, random: np.random.Generator) -> Conditions:
    balance = np.array(base.white_balance) * np.exp(random.normal(0, 0.05, 3))
    return replace(
        base,
        exposure=1.6 * float(np.exp(random.normal(0, 0.15))),
        metering=random.uniform(0.6, 1.0),
        white_balance=tuple(balance.tolist()),
        blur=float(max(random.normal(0.2, 0.4), 0.0)),
        noise=base.noise * random.uniform(0.5, 2.0),
        people=int(random.integers(1, visitors + 1)) if visitors and random.random() < 0.25 else 0,
    )
