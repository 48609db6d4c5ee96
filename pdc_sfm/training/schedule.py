"""What changes over the iterations of a training run: learning rate, image size, batch size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pdc_sfm.settings import require


@dataclass(frozen=True)
class ScheduleSettings:
    """Learning rate over the iterations, as a factor of `optimizer.rate`."""

    iterations: int = 350_000  # of the run
    kind: Literal["steps", "cosine", "trapezoid"] = (
        "steps"  # steps: halved at milestones; cosine: falling cosine; trapezoid: flat, then falling
    )
    milestones: tuple[int, ...] = (133_000, 240_000)  # for steps: halved after each (Sec. 4.1)
    warm_up: int = 0  # iterations of linear rise from nothing
    decay: float = 0.3  # for trapezoid: the last share of the iterations falls to `final`
    final: float = 0.01  # factor at the last iteration (cosine, trapezoid)

    def __post_init__(self) -> None:
        require(self.iterations > 0, "schedule.iterations must be positive")
        require(list(self.milestones) == sorted(self.milestones), "schedule.milestones must rise")
        require(self.warm_up >= 0, "schedule.warm_up must be at least 0")
        require(0 < self.decay <= 1, "schedule.decay must lie in (0, 1]")
        require(0 <= self.final <= 1, "schedule.final must lie in [0, 1]")

    def factor(self, iteration: int) -> float:
        """The factor at an iteration, counted from 0."""
        rise = min(1.0, (iteration + 1) / self.warm_up) if self.warm_up else 1.0
        if self.kind == "steps":
            return rise * 0.5 ** sum(iteration >= milestone for milestone in self.milestones)
        start = self.warm_up if self.kind == "cosine" else self.iterations * (1 - self.decay)
        done = min(max((iteration - start) / max(self.iterations - start, 1), 0.0), 1.0)
        return rise * (self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * done)))


@dataclass(frozen=True)
class Phase:
    """Image side and batch size from an iteration on."""

    start: int
    size: int
    batch: int


@dataclass(frozen=True)
class SizeSettings:
    """Sizes of the training images and batches over the iterations."""

    phases: tuple[tuple[int, int, int], ...] = ((0, 520, 15),)  # (from iteration, image side, batch)
    aspects: tuple[float, ...] = (1.0,)  # width / height, cycled through; the area stays that of the square

    def __post_init__(self) -> None:
        starts = [phase[0] for phase in self.phases]
        require(starts[:1] == [0] and starts == sorted(set(starts)), "sizes.phases must begin at iteration 0 and rise")
        require(len(self.aspects) > 0, "sizes.aspects must name a ratio")
        require(all(0.25 <= a <= 4 for a in self.aspects), "sizes.aspects must lie in [0.25, 4]")
        for _, size, batch in self.phases:
            sides = [side for aspect in self.aspects for side in self._sides(size, aspect)]
            require(min(sides) >= 64, f"sizes: images of side {size} would have a side of {min(sides)} px; at least 64")
            require(batch >= 1, f"sizes.phases: batch {batch} is below 1")

    def phase(self, iteration: int) -> Phase:
        """The phase an iteration belongs to."""
        return Phase(*[phase for phase in self.phases if phase[0] <= iteration][-1])

    def image_size(self, iteration: int) -> tuple[int, int]:
        """(height, width) of an iteration's images; multiples of 8 unless square."""
        return self._sides(self.phase(iteration).size, self.aspects[iteration % len(self.aspects)])

    @staticmethod
    def _sides(size: int, aspect: float) -> tuple[int, int]:
        if aspect == 1:
            return size, size
        return round(size / aspect**0.5 / 8) * 8, round(size * aspect**0.5 / 8) * 8

    def pairs_before(self, iteration: int) -> int:
        """How many pairs one process has used before an iteration: the place in the stream of pairs."""
        ends = [phase[0] for phase in self.phases[1:]] + [iteration]
        return sum(max(0, min(end, iteration) - start) * batch for (start, _, batch), end in zip(self.phases, ends))
