"""Presets are found by their names, from a checkout and from an installed wheel."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from readme_commands import ROOT

from pdc_sfm.cli import main
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import SettingsError
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.matches.snap import SnapSettings
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.tracks.settings import TrackSettings

NAMES = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"


FILES = sorted((ROOT / "configs").rglob("*.yaml"))
GIVEN = {  # a verb with inputs that are not there: what it says of them shows that it took its settings
    "match": ["--pairs", "absent", "--images", "absent", "--output", "out"],
    "aachen localize": ["--version", "1.1", "--dataset", "absent", "--output", "out"],
    "aachen challenge": ["--version", "1.1", "--dataset", "absent", "--output", "out"],
    "retrieve": ["--images", "absent", "--queries", "q", "--database", "d", "--output", "out.txt"],
    "keypoints": ["--images", "absent", "--output", "out.h5"],
    "train run": ["--photos", "absent", "--output", "out"],
    "train finetune": ["--model", "absent", "--images", "absent", "--output", "out"],
}


def verbs(path):
    """What a preset says that it is for."""
    first = path.read_text().splitlines()[0]
    assert first.startswith("# For: "), f"{path}: its first line says which verbs it is for"
    return first.removeprefix("# For: ").split(", ")


@pytest.mark.parametrize(("path", "verb"), [(path, verb) for path in FILES for verb in verbs(path)])
def test_a_preset_works_with_the_verbs_it_names(path, verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*verb.split(), *GIVEN[verb], "--config", path.stem]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "absent" in last
    assert "setting" not in last


@pytest.mark.parametrize("verb", ["match", "retrieve", "keypoints"])
def test_a_verb_takes_no_preset_of_another(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for path in FILES:
        if not any(path.stem == other.stem and verb in verbs(other) for other in FILES):
            main([*verb.split(), *GIVEN[verb], "--config", path.stem])
            assert "no preset" in capsys.readouterr().err


def test_a_verb_without_presets_says_so(capsys):
    assert main(["pair", "a.png", "b.png", "--output", "c.png", "--config", "aachen"]) == 2
    assert "this command has none, give a YAML file" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_of_matching_is_found_and_names_its_own_files(name):
    assert preset_path(name).samefile(ROOT / "configs" / f"{name}.yaml")
    assert load_settings(MatchingSettings, preset_path(name)).output.startswith("matches-pdc_")


def test_the_papers_settings_of_localization_are_the_papers():
    """Sec. 4.4: "smallest dimension is 600", "P_1 > 0.1 at a quarter", "round them to the original resolution", both ways."""
    settings = load_settings(MatchingSettings, preset_path("paper_aachen"))
    assert settings.dense == DenseSettings(min_side=600, max_side=None, method="direct", subpixel=False)
    assert settings.select == SelectSettings(radius=1.0, threshold=0.1, directions="both", stride=4)
    assert settings.tracks == TrackSettings(rule="hloc", max_error=1, cell_size=1, max_keypoints=None)
    sparse = load_settings(MatchingSettings, preset_path("paper_superpoint"))
    assert (sparse.keypoints, sparse.dense) == ("flow", settings.dense)
    assert sparse.snap == SnapSettings(distance=4, radius=1.0, threshold=0.1, directions="both", cyclic_distance=None)
    found = load_settings(KeypointSettings, preset_path("paper_superpoint", "keypoints"))
    assert (found.detector, found.nms_radius, found.min_side, found.max_side) == ("superpoint", 4, 600, None)


def test_the_papers_retrieval_is_the_papers():
    """ "The smallest dimension is 400", "a single forward pass", all images of the database."""
    settings = load_settings(RetrievalSettings, preset_path("retrieval", "retrieve"))
    assert (settings.mode, settings.min_side, settings.max_side) == ("exhaustive", 400, None)
    assert settings.method == "direct"
    counted = load_settings(MatchingSettings, preset_path("retrieval"))
    assert counted.dense == DenseSettings(min_side=400, max_side=None, method="direct", subpixel=False)
    assert counted.select.directions == "forward"


def test_the_papers_pose_is_the_papers():
    """ "A minimum dimension of 480", (H), P_1 > 0.1 at the outputted resolution."""
    settings = load_settings(MatchingSettings, preset_path("pose"))
    assert settings.dense == DenseSettings(min_side=480, max_side=None, method="homography", subpixel=False)
    assert settings.select == SelectSettings(radius=1.0, threshold=0.1, directions="forward", stride=4)
    assert (settings.tracks.rule, settings.tracks.max_keypoints) == ("hloc", None)


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
    code = "from pdc_sfm.settings import preset_path as p; print(p('aachen')); print(p('compact', 'train'))"
    elsewhere = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    told = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, env=elsewhere, capture_output=True, text=True, check=True
    )
    for line, name in zip(told.stdout.split(), ("aachen.yaml", "train/compact.yaml"), strict=True):
        assert line == str(tmp_path / "site" / "pdc_sfm" / "configs" / name)
