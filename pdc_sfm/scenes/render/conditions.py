"""When and how a picture is taken: sun and sky, lamps, the camera's exposure and noise, who walks by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

Color = tuple[float, float, float]


@dataclass(frozen=True)
class Conditions:
    """Light of one time of one day, and one camera's answer to it. Colors are linear."""

    name: str = "clear"
    seed: int = 0
    sun_azimuth: float = 215.0  # degrees from east, counter-clockwise
    sun_elevation: float = 42.0
    sun_strength: float = 2.6  # irradiance on a surface facing the sun
    sun_color: Color = (1.0, 0.92, 0.80)
    zenith: Color = (0.20, 0.36, 0.72)
    horizon: Color = (0.62, 0.72, 0.86)
    clouds: float = 0.5  # 0 none .. 1 closed
    cloud_color: Color = (0.95, 0.95, 0.97)
    lamps: float = 0.0  # strength of street lamps, and lit windows above 0
    exposure: float = 1.8
    metering: float = 0.5  # how far the camera corrects the exposure by what it sees: 0 not, 1 wholly
    white_balance: Color = (1.0, 1.0, 1.0)
    noise: float = 0.004  # standard deviation at mid gray, of full scale
    blur: float = 0.0  # pixels
    vignette: float = 0.22  # light lost in the corners
    people: int = 0
    cars: int = 0

    @property
    def night(self) -> bool:
        return self.lamps > 0

    @property
    def sun_direction(self) -> np.ndarray:
        """Unit vector towards the sun, (3,)."""
        a, e = np.radians(self.sun_azimuth), np.radians(self.sun_elevation)
        return np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])


def database_conditions(k: int, count: int, random: np.random.Generator) -> Conditions:
    """Two visits by day: a clear noon, and for the last third of the walk a bright sky without sun."""
    if k < 2 * count / 3:
        base = Conditions("noon", seed=11, sun_azimuth=251, sun_elevation=47)
    else:
        base = replace(_OVERCAST, seed=12, exposure=2.0)
    return _snapshot(base, random, people=int(random.integers(0, 5)), cars=int(random.integers(0, 2)))


def day_conditions(k: int, random: np.random.Generator) -> Conditions:
    """Other days: low evening sun, dull weather, a hazy morning, winter light."""
    base = (
        Conditions(
            "evening",
            21,
            205,
            29,
            2.5,
            (1.0, 0.78, 0.54),
            (0.20, 0.30, 0.55),
            (0.80, 0.68, 0.56),
            0.3,
            (0.95, 0.82, 0.72),
            exposure=1.9,
        ),
        replace(_OVERCAST, seed=22, exposure=1.55, white_balance=(0.97, 1.0, 1.06)),
        Conditions(
            "morning", 23, 328, 36, 2.1, (1.0, 0.86, 0.70), (0.30, 0.42, 0.66), (0.78, 0.80, 0.82), 0.55, exposure=1.9
        ),
        Conditions(
            "winter",
            24,
            290,
            31,
            2.3,
            (1.0, 0.90, 0.78),
            (0.17, 0.30, 0.62),
            (0.56, 0.66, 0.80),
            0.2,
            exposure=1.9,
            white_balance=(0.96, 1.0, 1.08),
        ),
    )[k % 4]
    return _snapshot(
        replace(base, noise=0.008), random, people=int(random.integers(4, 15)), cars=int(random.integers(0, 4))
    )


def night_conditions(k: int, random: np.random.Generator) -> Conditions:
    """After dark: street lamps, lit windows, much noise; some pictures right after sunset, some nearly black."""
    base = (
        Conditions(
            "night",
            31,
            sun_strength=0,
            zenith=(0.006, 0.007, 0.012),
            horizon=(0.030, 0.022, 0.017),
            clouds=0.45,
            cloud_color=(0.030, 0.024, 0.020),
            lamps=1.0,
            exposure=1.1,
            metering=0.0,
            white_balance=(1.0, 0.86, 0.70),
            noise=0.018,
            blur=0.6,
        ),
        Conditions(
            "dusk",
            32,
            sun_strength=0,
            zenith=(0.020, 0.036, 0.085),
            horizon=(0.075, 0.080, 0.105),
            clouds=0.5,
            cloud_color=(0.060, 0.062, 0.085),
            lamps=0.75,
            exposure=1.9,
            metering=0.0,
            white_balance=(1.0, 0.98, 0.92),
            noise=0.013,
            blur=0.5,
        ),
        Conditions(
            "late",
            33,
            sun_strength=0,
            zenith=(0.003, 0.004, 0.007),
            horizon=(0.014, 0.011, 0.009),
            clouds=0.2,
            cloud_color=(0.016, 0.013, 0.011),
            lamps=0.6,
            exposure=1.1,
            metering=0.0,
            white_balance=(1.05, 0.88, 0.62),
            noise=0.024,
            blur=0.7,
        ),
    )[k % 3]
    return _snapshot(base, random, people=int(random.integers(0, 8)), cars=int(random.integers(0, 2)))


def _snapshot(base: Conditions, random: np.random.Generator, people: int, cars: int) -> Conditions:
    """One picture of that hour: the camera meters a little differently each time, other people pass."""
    balance = np.array(base.white_balance) * np.exp(random.normal(0, 0.015, 3))
    return replace(
        base,
        seed=base.seed * 1000 + int(random.integers(1000)),
        exposure=base.exposure * float(np.exp(random.normal(0, 0.09))),
        white_balance=tuple(balance.tolist()),
        people=people,
        cars=cars,
    )


_OVERCAST = Conditions(
    "overcast",
    sun_strength=0,
    zenith=(0.62, 0.66, 0.72),
    horizon=(0.74, 0.76, 0.78),
    clouds=0.95,
    cloud_color=(0.72, 0.74, 0.77),
    exposure=1.7,
)
