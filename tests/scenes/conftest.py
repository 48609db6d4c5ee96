"""One town for all tests of the scene: built once, with little sky light, which is enough to look at."""

import pytest

from pdc_sfm.scenes import SceneSettings, Town, build_scene

SETTINGS = SceneSettings(
    width=96, height=72, database=3, day_queries=1, night_queries=1, sky_directions=5, shadow_texel=0.1
)


@pytest.fixture(scope="session")
def settings() -> SceneSettings:
    return SETTINGS


@pytest.fixture(scope="session")
def town() -> Town:
    return build_scene(SETTINGS)
