"""Where pictures are taken from: a walk around the square for the database, other places for queries."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions, database_conditions, day_conditions, night_conditions
from pdc_sfm.scenes.render.shot import Role, Shot
from pdc_sfm.scenes.settings import SceneSettings
from pdc_sfm.scenes.town.ground_plan import HALF, ground_height

# A query sees its target from a side and distance that the walk has, give or take
IN_VIEW, SAME_SIDE, ZOOM = np.radians(22), np.radians(30), 1.7


def plan_shots(settings: SceneSettings, taken: np.ndarray) -> list[Shot]:
    """All pictures of a scene. taken: (m, 3) x, y, radius of what stands on the square."""
    random = np.random.default_rng([settings.seed, 3])
    shots = []
    for k in range(settings.database):
        camera = _on_the_walk(settings, k / settings.database, k, taken, random)
        shots.append(_shot("db", k, camera, database_conditions(k, settings.database, random), random))
    walked = [shot.camera for shot in shots]
    for k in range(settings.day_queries):
        camera = _elsewhere(settings, k, taken, walked, random)
        shots.append(_shot("day", k, camera, day_conditions(k, random), random))
    for k in range(settings.night_queries):
        camera = _elsewhere(settings, k, taken, walked, random)
        shots.append(_shot("night", k, camera, night_conditions(k, random), random))
    return shots


def _shot(role: Role, k: int, camera: Camera, conditions: Conditions, random: np.random.Generator) -> Shot:
    return Shot(role, k + 1, camera, conditions, int(random.integers(2**31)))


def _on_the_walk(
    settings: SceneSettings, turn: float, k: int, taken: np.ndarray, random: np.random.Generator
) -> Camera:
    """Around the square counter-clockwise, mostly looking across it, now and then along the houses."""
    start = 2 * np.pi * turn - 2.2
    for attempt in range(400):
        angle = start + random.normal(0, 0.03 + 0.0005 * attempt)
        eye = _round(angle, (14.2, 10.4)) + random.normal(0, 0.6, 2)
        aside = 0.8 if k % 6 == 3 else random.uniform(-0.16, 0.16)  # now and then to the left of the middle
        ahead = angle + np.pi + aside
        target = _round(ahead, HALF)
        if _clear(eye, target, taken, reach=4.5 - attempt / 200):
            break
    return _camera(eye, target, (settings.width, settings.height), 0.82 * settings.width, random)


def _round(angle: float, extent: tuple[float, float]) -> np.ndarray:
    """A point of a rectangle with rounded corners, seen from its middle at an angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c, s]) * (abs(c / extent[0]) ** 4 + abs(s / extent[1]) ** 4) ** -0.25


def _elsewhere(
    settings: SceneSettings, k: int, taken: np.ndarray, walked: list[Camera], random: np.random.Generator
) -> Camera:
    """Anywhere on the square with something to see that the walk showed as well; other phones, every fourth held upright."""
    for _ in range(2000):
        eye = random.uniform([2.0 - HALF[0], 2.0 - HALF[1]], [HALF[0] - 2.0, HALF[1] - 2.0])
        ahead = random.uniform(0, 2 * np.pi)
        target = _round(ahead, HALF)
        if 13 < np.linalg.norm(target - eye) < 28 and _clear(eye, target, taken) and _shown(eye, target, walked):
            break
    focal = max(settings.width, settings.height) * random.uniform(0.74, 0.95)
    size = (settings.height, settings.width) if k % 4 == 3 else (settings.width, settings.height)
    return _camera(eye, target, size, focal, random)


def _shown(eye: np.ndarray, target: np.ndarray, walked: list[Camera]) -> bool:
    """Whether two of the cameras look at the target from a similar side and distance: no map holds what none showed."""
    similar = 0
    for camera in walked:
        ahead, other = camera.cam_from_world[2, :2], target - camera.center[:2]
        own = target - eye
        far, near = np.linalg.norm(other), np.linalg.norm(own)
        in_view = ahead @ other > np.cos(IN_VIEW) * far * np.linalg.norm(ahead)
        similar += in_view and own @ other > np.cos(SAME_SIDE) * far * near and max(far / near, near / far) < ZOOM
    return similar >= min(2, len(walked))


def _clear(eye: np.ndarray, target: np.ndarray, taken: np.ndarray, reach: float = 4.5) -> bool:
    """The place is free, and nothing stands right before the lens within `reach` metres."""
    to = taken[:, :2] - eye
    distance = np.linalg.norm(to, axis=1)
    if (distance < taken[:, 2] + 0.8).any():
        return False
    forward = (target - eye) / np.linalg.norm(target - eye)
    along, across = to @ forward, np.abs(to[:, 0] * forward[1] - to[:, 1] * forward[0])
    near = (along > 0) & (distance < reach + taken[:, 2])
    return not (near & (across < taken[:, 2] + 0.35 * along)).any()


def _camera(
    eye: np.ndarray, target: np.ndarray, size: tuple[int, int], focal: float, random: np.random.Generator
) -> Camera:
    height = ground_height(eye) + random.uniform(1.5, 1.8)
    look = np.linalg.norm(target - eye) * np.tan(np.radians(random.uniform(5.0, 10.5)))
    return Camera.looking(
        np.array([*eye, height]), np.array([*target, height + look]), size, focal, random.normal(0, 0.015)
    )
