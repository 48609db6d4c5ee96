"""A picture to take: from where, when, and under which name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions

Role = Literal["db", "day", "night"]


@dataclass(frozen=True)
class Shot:
    """One picture to take."""

    role: Role
    number: int  # within its role, from 1
    camera: Camera
    conditions: Conditions
    seed: int  # of the sensor's noise

    @property
    def name(self) -> str:
        return f"{self.role}/{self.number:04d}.jpg"
