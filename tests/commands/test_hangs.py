"""What would block its reader or never end is refused in one line: pipes, devices, folders, huge files, alias bombs."""

import os
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from fake_matcher import FakeMatcher, write_images
from projections import make_scene, write_features, write_matches, write_pairs
from projections import write_images as write_pictures
from readme_commands import ROOT

from pdc_sfm.colmap.mapping.reconstruction import reconstruct
from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import FormatError, ImageError, SettingsError, UserError
from pdc_sfm.images import LARGEST, list_images, read_image, write_image
from pdc_sfm.retrieval.image_lists import read_names
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import read_pairs
from pdc_sfm.weights import sha256

SECONDS = 60  # a command has ended by then, unless it hangs
PATIENCE = ["timeout", str(SECONDS)]
COMMANDS = {
    "keypoints": ["keypoints", "--images", "images", "--output", "k.h5"],
    "pair": ["pair", "images/db/000.png", "images/odd.png", "--output", "p.png"],
    "preview": ["train", "preview", "--photos", "images", "--output", "sheet.png", "--pairs", "1"],
    "homographies": ["evaluate", "homographies", "--images", "images", "--count", "1", "--output", "out"],
    "sets": ["evaluate", "homography-sets", "--images", "images", "--output", "out"],
}


@pytest.fixture(autouse=True)
def _patience():
    """What waits for ever in this process fails, instead of holding up all tests."""

    def give_up(*_):
        raise TimeoutError(f"not done after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(5 * SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def make_odd(path, kind):
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "device":
        path.symlink_to("/dev/zero")
    if kind == "nowhere":
        path.symlink_to("absent.png")
    if kind == "huge":
        with open(path, "wb") as file:
            file.truncate(LARGEST + 1)


@pytest.fixture(params=["pipe", "device", "nowhere", "huge"])
def odd(request, tmp_path):
    """A folder of images in which one is none."""
    write_images(tmp_path / "images", 3)
    make_odd(tmp_path / "images" / "odd.png", request.param)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends(tmp_path, command):
    write_images(tmp_path / "images", 3)
    make_odd(tmp_path / "images" / "odd.png", "pipe")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "pdc_sfm.cli", *COMMANDS[command]]
    done = subprocess.run(
        [*PATIENCE, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1, 2), done.stderr
    assert "Traceback" not in done.stderr


def test_an_image_that_is_none_is_said_to_be_none(odd):
    with pytest.raises(ImageError, match=r"odd\.png"):
        read_image(odd / "images" / "odd.png")


def test_it_costs_its_own_pairs_only(odd):
    names = list_images(odd / "images")
    assert "odd.png" in names
    pairs = [(a, b) for a in names for b in names if a < b]
    result = match_pairs(odd / "images", pairs, odd / "out", MatchingSettings(readers=0), matcher=FakeMatcher())
    assert list(result.loop.bad) == ["odd.png"]
    assert result.loop.pairs == 3


def test_a_folder_with_the_name_of_an_image_is_a_folder(tmp_path):
    write_image(tmp_path / "trip.jpg" / "a.png", np.zeros((32, 32, 3), np.uint8))
    assert list_images(tmp_path) == ["trip.jpg/a.png"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_colmap_does_not_wait_for_it(tmp_path, kind):
    names = ["a.png", "b.png", "c.png"]
    scene = make_scene(names, points=60)
    images = write_pictures(scene, tmp_path / "images", names[:2])
    make_odd(images / "c.png", kind)
    write_pairs(tmp_path / "pairs.txt", scene.pairs())
    files = write_features(scene, tmp_path / "f.h5"), write_matches(scene, tmp_path / "m.h5", scene.pairs())
    with pytest.raises(ImageError, match=r"c\.png is a folder, a pipe or a device"):
        reconstruct(images, tmp_path / "pairs.txt", *files, tmp_path / "sfm")
    with pytest.raises(ImageError, match=r"c\.png is a folder, a pipe or a device"):
        match_sift(images, tmp_path / "pairs.txt", tmp_path / "sift" / "f.h5", tmp_path / "sift" / "m.h5")


def test_lists_and_settings_that_never_end_are_refused(tmp_path):
    for read, error in (
        (lambda path: load_settings(MatchingSettings, path), SettingsError),
        (read_pairs, FormatError),
        (lambda path: read_names(path, tmp_path), FormatError),
        (sha256, UserError),
    ):
        with pytest.raises(error):
            read("/dev/zero")


def test_a_short_list_takes_little_memory(tmp_path):
    (tmp_path / "pairs.txt").write_text("a.png b.png\n")
    tracemalloc.start()
    read_pairs(tmp_path / "pairs.txt")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 << 20


def test_settings_may_come_by_a_pipe(tmp_path):
    """As a shell gives them: --config <(...)."""
    reader, writer = os.pipe()
    os.write(writer, b"dense: {min_side: 321}\n")
    os.close(writer)
    assert load_settings(MatchingSettings, f"/dev/fd/{reader}").dense.min_side == 321
    os.close(reader)


# one level more is ten times as long to read for who reads it; thirty would never end
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 6))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "no aliases"),
        ("memory: &m 1GB\nweights: *m\n", "no aliases"),
        ("dense: &d {scales: [*d]}\n", "no aliases"),
        ("a: &a [*a]\n", "no aliases"),
        ("x: 1\n" * 40000, "twice"),
    ],
)
def test_settings_that_grow_when_they_are_read_are_refused_at_once(tmp_path, text, said):
    (tmp_path / "c.yaml").write_text(text)
    begun = time.process_time()
    with pytest.raises(SettingsError, match=rf"c\.yaml.*{said}"):
        load_settings(MatchingSettings, tmp_path / "c.yaml")
    assert time.process_time() - begun < 20


def test_many_different_keys_are_read_in_no_time(tmp_path):
    (tmp_path / "c.yaml").write_text("".join(f"k{k}: 1\n" for k in range(40000)))
    begun = time.process_time()
    with pytest.raises(SettingsError, match="unknown setting k0"):
        load_settings(MatchingSettings, tmp_path / "c.yaml")
    assert time.process_time() - begun < 20


def test_a_file_larger_than_any_settings_is_refused(tmp_path):
    (tmp_path / "c.yaml").write_text("# " + "x" * (1 << 20))
    with pytest.raises(SettingsError, match="more than 1,048,576 characters"):
        load_settings(MatchingSettings, tmp_path / "c.yaml")


def test_an_alias_in_a_word_is_refused_or_text():
    with pytest.raises(SettingsError):
        load_settings(MatchingSettings, None, ["dense.scales=[&a 1, *a]"])
