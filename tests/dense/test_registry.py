"""A strategy is one file, or one registered function: settings, help and estimator find it by its name."""

import subprocess
import sys

import numpy as np
import pytest

from pdc_sfm.dense import strategies
from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.errors import SettingsError
from pdc_sfm.settings import load_settings
from pdc_sfm.settings.help import describe

TOY = """
from dataclasses import replace

from pdc_sfm.dense.strategies import register


@register("toy")
def estimate(estimator, directions):
    return [replace(estimator.one_pass([pair])[0], method="toy") for pair in directions]
"""


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """What a test registers is known to no other."""
    for name in strategies.strategy_names():  # files register once, when they are loaded
        strategies.find_strategy(name)
    monkeypatch.setattr(strategies, "_registered", dict(strategies._registered))


def test_the_files_are_the_strategies():
    assert strategies.strategy_names() == ["auto", "direct", "homography", "multiscale", "search"]
    for name in strategies.strategy_names():
        assert callable(strategies.find_strategy(name).estimate)


def test_a_registered_strategy_is_used_for_each_direction(ideal_network, photograph):
    exec(compile(TOY, "toy", "exec"), {})
    settings = load_settings(DenseSettings, overrides=["method=toy", "min_side=null", "subpixel=false"])
    estimator = Estimator(ideal_network(), settings)
    image = photograph(np.eye(3), (248, 240))
    codes = [estimator.encode(image), estimator.encode(image)]
    assert estimator.estimate(*codes).method == "toy"
    assert [found.method for found in estimator.estimate_both(*codes)] == ["toy", "toy"]
    assert [found.method for found in estimator.estimate_batch([codes, codes])] == ["toy", "toy"]


def test_a_file_in_the_folder_is_all_it_takes(tmp_path, monkeypatch):
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(tmp_path)])
    settings = load_settings(DenseSettings, overrides=["method=toy"])
    kinds = {setting.key: setting.kind for setting in describe(settings)}
    assert kinds["method"] == "auto|direct|homography|multiscale|search|toy"
    assert strategies.find_strategy("toy").estimate.__module__ == "pdc_sfm.dense.strategies.toy"
    sys.modules.pop("pdc_sfm.dense.strategies.toy")


def test_an_unknown_strategy_is_refused_with_the_known_ones():
    with pytest.raises(
        SettingsError, match="method=quick is not possible: choose from auto, direct, homography, multiscale, search"
    ):
        load_settings(DenseSettings, overrides=["method=quick"])


def test_settings_load_no_torch():
    code = (
        "import sys; from pdc_sfm.dense.settings import DenseSettings; DenseSettings(method='search')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
