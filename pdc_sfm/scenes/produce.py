"""Take all pictures of a scene, on several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from pdc_sfm.scenes.render import Rendering, render
from pdc_sfm.scenes.settings import SceneSettings
from pdc_sfm.scenes.town import Scene, build_scene
from pdc_sfm.scenes.walk import Shot, plan_shots

_scene: Scene | None = None  # one per worker process, built by its initializer


def take_pictures(settings: SceneSettings, workers: int = 1) -> Iterator[tuple[Shot, Rendering]]:
    """Yield every picture in order. The result does not depend on `workers`.

    With more than one worker, call it from a script guarded by `if __name__ == "__main__"`.
    """
    if workers <= 1:
        scene = build_scene(settings)
        for shot in plan_shots(settings, scene.taken):
            yield shot, _take(scene, shot)
        return
    shots = plan_shots(settings, build_scene(settings, lit=False).taken)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(shots)), context, _start_worker, (settings,)) as pool:
        yield from zip(shots, pool.map(_take_in_worker, shots))


def _take(scene: Scene, shot: Shot) -> Rendering:
    return render(scene, shot.camera, shot.conditions, shot.seed)


def _start_worker(settings: SceneSettings) -> None:
    global _scene
    import cv2

    cv2.setNumThreads(1)
    _scene = build_scene(settings)


def _take_in_worker(shot: Shot) -> Rendering:
    return _take(_scene, shot)
