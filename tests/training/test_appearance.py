"""Changes of light: chosen by probability, never a displacement."""

import numpy as np
import pytest
from photo_fakes import waves

from pdc_sfm.errors import SettingsError
from pdc_sfm.synthetic import appearance
from pdc_sfm.synthetic.appearance import PROBABLE, PhotometricSettings, augment

IMAGE = waves(0, (96, 128))


def only(**probabilities: float) -> PhotometricSettings:
    return PhotometricSettings(**{name: probabilities.get(name, 0.0) for name in PROBABLE})


def test_without_strength_or_without_probabilities_nothing_changes():
    rng = np.random.default_rng(0)
    assert np.array_equal(augment(IMAGE, PhotometricSettings(strength=0), rng), IMAGE)
    assert np.array_equal(augment(IMAGE, only(), rng), IMAGE)


@pytest.mark.parametrize("name", PROBABLE)
def test_each_change_alone_changes_the_image_and_leaves_its_type(name):
    changed = 0
    for seed in range(8):
        image = augment(IMAGE, only(**{name: 1.0}), np.random.default_rng(seed))
        assert image.dtype == np.uint8
        assert image.shape == IMAGE.shape
        changed += not np.array_equal(image, IMAGE)
    assert changed >= 4


def test_changes_are_mild_as_a_rule_and_strong_at_times():
    images = [augment(IMAGE, PhotometricSettings(), np.random.default_rng(seed)) for seed in range(100)]
    apart = np.array([np.abs(image.astype(float) - IMAGE).mean() for image in images])
    assert np.median(apart) < 45
    assert (apart > 60).mean() > 0.03
    assert (apart < 25).mean() > 0.25


def test_night_is_dark_and_has_lamps():
    nights = [appearance.night(IMAGE / np.float32(255), 0.5, np.random.default_rng(seed)) for seed in range(40)]
    assert np.mean([night.mean() for night in nights]) < 0.6 * IMAGE.mean() / 255
    assert np.mean([night.max() > 0.8 for night in nights]) > 0.4


@pytest.mark.parametrize("change", [appearance.blur, appearance.motion_blur])
def test_blurs_move_nothing(change):
    """The center of mass of a dot stays."""
    dot = np.zeros((41, 41, 3), np.float32)
    dot[20, 20] = 1
    for seed in range(20):
        spread = change(dot, 1.0, np.random.default_rng(seed))[..., 0].astype(np.float64)
        y, x = np.mgrid[:41, :41]
        assert (spread * x).sum() / spread.sum() == pytest.approx(20, abs=0.3 if change is appearance.blur else 1e-4)
        assert (spread * y).sum() / spread.sum() == pytest.approx(20, abs=0.3 if change is appearance.blur else 1e-4)


def test_a_turn_of_hue_keeps_gray_gray():
    assert appearance._hue(0.7) @ np.ones(3) == pytest.approx(np.ones(3))
    assert appearance._hue(0.7) @ appearance._hue(-0.7) == pytest.approx(np.eye(3))


def test_probabilities_are_checked_by_name():
    with pytest.raises(SettingsError, match="night"):
        PhotometricSettings(night=2)
