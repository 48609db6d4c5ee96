"""Where pictures are taken from."""

import numpy as np
import pytest

from pdc_sfm.scenes import SceneSettings, plan_shots
from pdc_sfm.scenes.town.ground_plan import HALF


def facade_ahead(camera) -> np.ndarray:
    """(2,) where the middle of the picture meets the rectangle of the facades."""
    eye, ahead = camera.center[:2], camera.cam_from_world[2, :2]
    steps = [(np.copysign(half, go) - at) / go for half, go, at in zip(HALF, ahead, eye) if abs(go) > 1e-9]
    return eye + min(steps) * ahead


@pytest.fixture(scope="module")
def shots(town):
    return plan_shots(SceneSettings(database=24, day_queries=12, night_queries=12), town.taken)


def test_what_a_query_shows_the_walk_showed_from_a_similar_side_and_distance(shots):
    walked = [shot.camera for shot in shots if shot.role == "db"]
    for shot in shots:
        if shot.role == "db":
            continue
        camera, place = shot.camera, facade_ahead(shot.camera)
        own = place - camera.center[:2]
        similar = 0
        for other in walked:
            ray, ahead = place - other.center[:2], other.cam_from_world[2, :2]
            far, near = np.linalg.norm(ray), np.linalg.norm(own)
            in_view = ray @ ahead > np.cos(np.arctan(other.width / 2 / other.focal)) * far * np.linalg.norm(ahead)
            similar += in_view and ray @ own > np.cos(np.radians(35)) * far * near and 0.5 < far / near < 2
        assert similar >= 2, shot.name


def test_queries_are_taken_elsewhere_and_by_day_as_far_from_the_walk_as_by_night(shots):
    centers = np.array([shot.camera.center[:2] for shot in shots if shot.role == "db"])
    away = {
        role: [np.linalg.norm(centers - s.camera.center[:2], axis=1).min() for s in shots if s.role == role]
        for role in ("day", "night")
    }
    assert min(map(np.median, away.values())) > 1.0
    assert 0.5 < np.median(away["day"]) / np.median(away["night"]) < 2


def test_the_database_is_the_same_whatever_the_queries(town, shots):
    alone = plan_shots(SceneSettings(database=24, day_queries=0, night_queries=0), town.taken)
    for one, other in zip(alone, shots):
        np.testing.assert_array_equal(one.camera.cam_from_world, other.camera.cam_from_world)
