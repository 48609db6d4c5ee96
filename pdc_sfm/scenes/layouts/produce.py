"""Take all pictures of a scene, on several processes."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from pdc_sfm.processes import in_order
from pdc_sfm.scenes.render.renderer import Rendering, render_image
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import SceneSettings
from pdc_sfm.scenes.town.town import Town, build_scene
from pdc_sfm.scenes.town.walk import plan_shots


def take_pictures(settings: SceneSettings, workers: int = 1) -> Iterator[tuple[Shot, Rendering]]:
    """Yield every picture in order. The result does not depend on `workers`.

    With more than one worker, call it from a script guarded by `if __name__ == "__main__"`.
    """
    shots = plan_shots(settings, build_scene(settings, lit=False).taken)
    workers = min(workers, len(shots))
    yield from zip(
        shots, in_order(_TownPhotographer(settings, shots), stop=len(shots), workers=workers if workers > 1 else 0)
    )


@dataclass(frozen=True)
class _TownPhotographer:
    """Takes picture number n; each process builds the scene once."""

    settings: SceneSettings
    shots: list[Shot]

    @functools.cached_property
    def scene(self) -> Town:
        return build_scene(self.settings)

    def __call__(self, number: int) -> Rendering:
        shot = self.shots[number]
        return render_image(self.scene, shot.camera, shot.conditions, shot.seed)
