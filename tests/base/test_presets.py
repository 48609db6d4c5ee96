"""Presets are found by their names, from a checkout and from an installed wheel."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from readme_commands import ROOT

from pdc_sfm.cli import main
from pdc_sfm.engine.run import RunSettings
from pdc_sfm.errors import SettingsError
from pdc_sfm.presets import preset_path
from pdc_sfm.settings import load_settings

NAMES = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_of_matching_is_found_and_holds_settings_of_matching(name):
    assert preset_path(name).samefile(ROOT / "configs" / f"{name}.yaml")
    assert load_settings(RunSettings, preset_path(name)) != RunSettings()


def test_a_file_is_taken_as_it_is(tmp_path):
    assert preset_path(tmp_path / "mine.yaml") == tmp_path / "mine.yaml"
    assert preset_path("folder/aachen").parts == ("folder", "aachen")


def test_an_unknown_name_is_one_line_that_lists_the_known(capsys):
    with pytest.raises(SettingsError, match=f"no preset achen: give a YAML file or one of {', '.join(NAMES)}"):
        preset_path("achen")
    assert main(["match", "--pairs", "p.txt", "--images", ".", "--output", "o", "--config", "achen"]) == 2
    assert capsys.readouterr().err.startswith("pdc-sfm: no preset achen")


def test_a_wheel_carries_them_and_all_else_that_is_not_python(tmp_path):
    source = tmp_path / "source"
    skip = shutil.ignore_patterns("__pycache__", "*.safetensors", "network", "scenes", "training")
    shutil.copytree(ROOT / "pdc_sfm", source / "pdc_sfm", symlinks=True, ignore=skip)
    shutil.copytree(ROOT / "configs", source / "configs")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)], cwd=source, capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as wheel:
        wheel.extractall(tmp_path / "site")
    for name in ("report/page.css", "report/page.js", "weights/compact.md"):
        assert (tmp_path / "site" / "pdc_sfm" / name).is_file()
    code = "from pdc_sfm.presets import preset_path as p; print(p('aachen')); print(p('compact', 'train'))"
    elsewhere = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    told = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, env=elsewhere, capture_output=True, text=True, check=True
    )
    for line, name in zip(told.stdout.split(), ("aachen.yaml", "train/compact.yaml"), strict=True):
        assert line == str(tmp_path / "site" / "pdc_sfm" / "configs" / name)
