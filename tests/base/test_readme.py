"""Every command of README.md runs: on small pictures, in a folder laid out as README says.

Commands are run as written, with smaller sizes appended (`SMALL`). What takes hours or installs software is asked
for its help or its plan instead (`ASKED`). A command that fits neither fails the test.
"""

import re
import runpy
import shlex
import shutil
import subprocess
import sys

import cv2
import pytest
from readme_commands import ROOT, blocks, inline

from pdc_sfm.aachen.challenge_files import write_challenge_files
from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.cli import VERBS, main
from pdc_sfm.files import write_text
from pdc_sfm.images import read_image, write_image
from pdc_sfm.scenes import Camera, SceneSettings, build_scene, plan_shots, render_image, write_aachen

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks(README)
SHELL = [block.lines for block in BLOCKS if not block.language]
PYTHON = ["\n".join(block.lines) for block in BLOCKS if block.language == "python"]
TOWN = SceneSettings(
    width=256, height=192, database=6, day_queries=0, night_queries=1, depth=False, sky_directions=3, shadow_texel=0.2
)
TRAINING = (
    "schedule.iterations=1 sizes.phases=[[0,64,1]] sizes.aspects=1 validation.pairs=1 validation.hard=0 "
    "validation.unrelated=0 validation.real=1 validation.size=64 workers=0 threads=1 log_every=1 backbone_weights=none"
)
# The first words of a command -> what makes it small. None: it is asked for its help only.
SMALL = {
    "pair": "dense.min_side=256",
    "pairs": "",
    "match": "dense.min_side=256",
    "keypoints": "",
    "reconstruct": "",
    "triangulate": "",
    "localize --map": "match.dense.min_side=256 retrieve.min_side=256",
    "localize": "",
    "retrieve": "min_side=256",
    "aachen localize": "match.dense.min_side=256 retrieve.min_side=256",
    "aachen challenge": "match.dense.min_side=256",
    "weights inspect": "",
    "train run": TRAINING,
    "train finetune": TRAINING,
    "evaluate homographies": "count=1 kinds=viewpoint size=128,160 dense.min_side=256",
    "evaluate scene": None,  # rendered pictures of the full size; tests/evaluation runs it
    "scene": "width=96 height=72 database=2 day_queries=0 night_queries=0 sky_directions=3 shadow_texel=0.3",
    "report": "",
    "view": "",
    "frames": "",
    "map panoramas/": None,  # tests/media runs it
    "map": "match.dense.min_side=256 report=false",
    "extend": "match.dense.min_side=256 report=false",
    "demo": "match.dense.min_side=256 report=false",
}
DONE = (0, 1)  # 1: something was left out, which small pictures may well cause


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """photos/, two of them as a.jpg and b.jpg, lists, weights, a dataset in Aachen's layout."""
    folder = tmp_path_factory.mktemp("readme")
    scene = build_scene(TOWN)
    shot = plan_shots(TOWN, scene.taken)[0]
    right, down, forward = shot.camera.cam_from_world[:, :3]
    for number in range(5):  # a few steps to the side, looking at the same house
        eye, target = shot.camera.center + (2.0 * number - 3.0) * right, shot.camera.center + 18.0 * forward
        camera = Camera.looking(eye, target, shot.camera.size, shot.camera.focal)
        place = folder / ("photos" if number < 4 else "new")
        write_image(place / f"{number}.jpg", render_image(scene, camera, shot.conditions, number).image)
    write_text(folder / "gps.csv", "name x y z\n" + "".join(f"{k}.jpg {2.0 * k - 3.0} 0 0\n" for k in range(4)))
    for name, number in (("a.jpg", 0), ("b.jpg", 1), ("A.jpg", 2), ("B.jpg", 3)):
        shutil.copy(folder / "photos" / f"{number}.jpg", folder / name)
    size, focal = shot.camera.size, shot.camera.focal
    camera = f"SIMPLE_PINHOLE {size[0]} {size[1]} {focal} {size[0] / 2} {size[1] / 2}"
    write_text(folder / "queries.txt", f"0.jpg {camera}\n")
    (folder / "queries").mkdir()
    shutil.copy(folder / "photos" / "0.jpg", folder / "queries" / "new.jpg")
    write_text(folder / "database.txt", "1.jpg\n2.jpg\n3.jpg\n")
    write_challenge_files(AachenDataset(write_aachen(folder / "datasets" / "aachen", TOWN, "1.1"), "1.1"))
    photos = [read_image(folder / "photos" / f"{number}.jpg") for number in range(4)]
    video = cv2.VideoWriter(str(folder / "walk.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 2, photos[0].shape[1::-1])
    for photo in photos:
        video.write(photo[..., ::-1])
    video.release()
    (folder / "configs").symlink_to(ROOT / "configs")
    return folder


@pytest.fixture
def at_home(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GOMP_SPINCOUNT", "0")
    monkeypatch.setattr("webbrowser.open", lambda address: True)  # nothing opens while tests run
    return folder


def run(line: str) -> None:
    """Run a command of README, small."""
    words = shlex.split(line, comments=True)
    if not words:
        return
    if words[0] == "make":
        planned = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=True)
        assert planned.stdout.strip()
    elif words[:2] == ["pip", "install"] and words[2] in (".", "pdc_sfm[train]", "pdc-sfm[heic]"):
        pass  # test_presets.py builds a wheel and looks into it
    elif words[0] == "python":
        ask_for_help(words[1])
    elif words[0] == "pdc-sfm":
        run_verb(words[1:])
    else:
        pytest.fail(f"README has a command that no test covers: {line}")


def ask_for_help(script: str) -> None:
    """A benchmark: it is there and can be started."""
    path, argv = ROOT / script, sys.argv
    sys.path.insert(0, str(path.parent))
    try:
        sys.argv = [script, "--help"]
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = argv
        sys.path.remove(str(path.parent))
    assert ended.value.code == 0


def run_verb(words: list[str]) -> None:
    """A verb alone, or one of those that would take too long, says what it does; others do it."""
    names = [key for key in [*SMALL, *VERBS, ""] if words[: len(key.split())] == key.split()]
    assert names, f"README has a command that no test covers: pdc-sfm {' '.join(words)}"
    small = SMALL.get(names[0])
    if small is None or words == names[0].split() or {"--help", "--settings"} & set(words):
        with pytest.raises(SystemExit) as ended:
            main([*names[0].split(), "--help"])
        assert ended.value.code == 0
    else:
        assert main([*words, *small.split()]) in DONE


def test_readme_has_commands_and_python():
    assert sum(map(len, SHELL)) >= 6
    assert PYTHON


@pytest.mark.parametrize("lines", SHELL, ids=lambda lines: " ".join(lines[0].split()[:3]))
def test_a_block_of_commands_runs(lines, at_home):
    for line in lines:
        run(line)


@pytest.mark.parametrize("line", sorted(set(inline(README))))
def test_a_command_inside_a_sentence_runs(line, at_home):
    run(line.replace("FILE", str(ROOT / "pdc_sfm/weights/compact.safetensors")))


@pytest.mark.parametrize("source", PYTHON, ids=range(len(PYTHON)))
def test_the_python_runs(source, at_home):
    names: dict = {}
    exec(compile(source, "README.md", "exec"), names)
    if "result" in names:
        assert len(names["result"].matches.keypoints0) > 100


@pytest.mark.parametrize("line", re.findall(r"`((?:from |import )?pdc_sfm[ .][^`\n]+)`", README))
def test_python_inside_a_sentence_names_what_exists(line):
    names: dict = {}
    exec(line if "import" in line else f"import {line.rpartition('.')[0]}; {line.removesuffix('()')}", names)


def test_every_command_of_the_program_is_named():
    for verb in VERBS:
        assert f"`pdc-sfm {verb}" in README or f"`{verb}`" in README or f"`{verb} " in README, verb


def test_every_picture_and_page_is_there():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target
