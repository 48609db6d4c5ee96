"""A pair list to hloc files with a matcher that needs no network: resume, bad input, the command line."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest
from fake_matcher import FakeMatcher, write_images, write_list
from h5_content import content

from pdc_sfm.engine.pairing import exhaustive_pairs, nearest_pose_pairs, sequential_pairs
from pdc_sfm.engine.run import MatchingSettings, _made_by, match_pairs
from pdc_sfm.errors import BusyError, FormatError, ImageError, OtherSettingsError, SettingsError
from pdc_sfm.images import write_image
from pdc_sfm.settings import load_settings
from pdc_sfm.store.journal import RawStore, open_raw_store


@pytest.fixture
def photos(tmp_path):
    """Eight images in a folder and the list of all their pairs."""
    names = write_images(tmp_path / "photos", 8)
    return tmp_path / "photos", write_list(tmp_path / "all.txt", exhaustive_pairs(names)), tmp_path / "out"


def test_each_image_is_encoded_once_and_each_pair_matched_once(photos):
    matcher = FakeMatcher()
    result = match_pairs(photos[0], photos[1], photos[2], matcher=matcher)
    assert len(matcher.encoded) == len(set(matcher.encoded)) == result.loop.encoded == 8
    assert len(matcher.matched) == len(set(matcher.matched)) == result.pairs == 28
    assert (result.features.name, result.matches.name) == ("feats_matches-pdc.h5", "matches-pdc_all.h5")
    assert result.complete


def test_the_order_of_the_list_and_the_memory_do_not_change_the_files(photos, tmp_path):
    images, pairs, output = photos
    match_pairs(images, pairs, output, matcher=FakeMatcher())
    lines = pairs.read_text().splitlines()
    random.Random(0).shuffle(lines)
    pairs.write_text("\n".join([*lines, lines[3], " ".join(reversed(lines[4].split()))]))
    matcher = FakeMatcher()
    result = match_pairs(images, pairs, tmp_path / "b", MatchingSettings(memory="2500", batch=3), matcher=matcher)
    assert result.repeated == 2
    assert 8 < len(matcher.encoded) < 56  # two codes fit
    assert content(tmp_path / "b") == content(output)


def test_a_rerun_does_nothing_and_a_longer_list_only_what_is_new(photos):
    images, pairs, output = photos
    lines = pairs.read_text().splitlines()
    pairs.write_text("\n".join(lines[:20]))
    match_pairs(images, pairs, output, matcher=FakeMatcher())
    matcher = FakeMatcher()
    assert match_pairs(images, pairs, output, matcher=matcher).summary is None
    assert matcher.encoded == []
    pairs.write_text("\n".join(lines))
    assert match_pairs(images, pairs, output, matcher=matcher).pairs == 28
    assert len(matcher.matched) == 8


def test_other_settings_are_refused_and_tracks_can_be_made_again(photos):
    images, pairs, output = photos
    match_pairs(images, pairs, output, matcher=FakeMatcher())
    with pytest.raises(SettingsError, match=r"dense.min_side: 480 -> 600"):
        match_pairs(
            images, pairs, output, load_settings(MatchingSettings, None, ["dense.min_side=600"]), matcher=FakeMatcher()
        )
    coarser, matcher = load_settings(MatchingSettings, None, ["tracks.cell_size=16"]), FakeMatcher()
    with pytest.raises(SettingsError, match=r"tracks.cell_size: 2.0 -> 16.0"):
        match_pairs(images, pairs, output, coarser, matcher=matcher)
    match_pairs(images, pairs, output, coarser, matcher=matcher, overwrite="tracks")
    assert matcher.matched == []
    match_pairs(images, pairs, output, coarser, matcher=matcher, overwrite="all")
    assert len(matcher.matched) == 28


def test_sixteen_bits_are_refused_on_a_cpu_and_never_mixed_with_thirty_two(photos, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    images, pairs, output = photos
    with pytest.raises(SettingsError, match="precision=float16 is for a GPU"):
        MatchingSettings(precision="float16", device="cpu")
    with pytest.raises(SettingsError, match="precision=float16 is for a GPU"):
        match_pairs(images, pairs, output, MatchingSettings(precision="float16"))
    assert not output.exists()
    half = MatchingSettings(precision="float16", device="cuda")
    match_pairs(images, pairs, output, matcher=FakeMatcher())
    with pytest.raises(SettingsError, match="precision"):
        match_pairs(images, pairs, output, half, matcher=FakeMatcher())


def test_bad_images_cost_their_pairs_only_and_can_be_mended(photos):
    images, pairs, output = photos
    good = (images / "db/001.png").read_bytes()
    (images / "db/001.png").write_bytes(good[:50])
    (images / "db/002.png").unlink()
    (images / "db/002.png").mkdir()
    result = match_pairs(images, pairs, output, matcher=FakeMatcher())
    assert set(result.loop.bad) == {"db/001.png", "db/002.png"}
    assert "is not a readable image" in result.loop.bad["db/001.png"]
    assert "is a folder" in result.loop.bad["db/002.png"]
    assert len(result.loop.skipped) == 13
    assert (result.complete, result.summary.missing) == (False, 13)
    (images / "db/001.png").write_bytes(good)
    (images / "db/002.png").rmdir()
    (images / "db/002.png").write_bytes(good)
    matcher = FakeMatcher()
    assert match_pairs(images, pairs, output, matcher=matcher).complete
    assert len(matcher.matched) == 13
    match_pairs(images, pairs, output.with_name("fresh"), matcher=FakeMatcher())
    assert content(output) == content(output.with_name("fresh"))


def test_an_image_the_network_refuses_is_bad_too(photos):
    images, pairs, output = photos
    write_images(images, 1, (4, 48))
    result = match_pairs(images, pairs, output, matcher=FakeMatcher())
    assert list(result.loop.bad) == ["db/000.png"]
    assert len(result.loop.skipped) == 7


def test_strict_stops_at_the_first_bad_image_and_keeps_what_was_done(photos):
    images, pairs, output = photos
    (images / "db/007.png").write_bytes(b"")
    with pytest.raises(ImageError, match=r"007\.png"):
        match_pairs(images, pairs, output, matcher=FakeMatcher(), strict=True)
    assert len(RawStore(output / "matches-pdc_all.raw")) == 21
    assert not list(output.glob("*.h5"))


def test_all_images_bad_is_reported_not_raised(photos):
    images, pairs, output = photos
    for path in images.rglob("*.png"):
        path.write_text("no image")
    result = match_pairs(images, pairs, output, matcher=FakeMatcher())
    assert (len(result.loop.bad), result.summary.matches) == (8, 0)


def test_pairs_without_any_match_are_no_error(photos):
    result = match_pairs(photos[0], photos[1], photos[2], matcher=FakeMatcher(matches=0))
    assert (result.summary.matches, result.summary.keypoints, result.complete) == (0, 0, True)


def test_a_list_or_folder_that_is_none_is_named(photos, tmp_path):
    images, pairs, output = photos
    with pytest.raises(ImageError, match="is not a folder"):
        match_pairs(tmp_path / "nowhere", pairs, output, matcher=FakeMatcher())
    pairs.write_text("a a\n")
    with pytest.raises(FormatError, match="holds no pair of two images"):
        match_pairs(images, pairs, output, matcher=FakeMatcher())


def test_a_second_process_on_the_same_output_is_told(photos):
    images, pairs, output = photos
    with open_raw_store(output / "matches-pdc_all.raw", {}), pytest.raises(BusyError, match="another process"):
        match_pairs(images, pairs, output, matcher=FakeMatcher())


SLOW_RUN = """
import sys, time
sys.path.insert(0, sys.argv[1])
from fake_matcher import FakeMatcher
from pdc_sfm.engine.run import match_pairs

class Slow(FakeMatcher):
    identity = "FakeMatcher"
    def match(self, code0, code1):
        time.sleep(0.01)
        return super().match(code0, code1)

print("ready", flush=True)
result = match_pairs(sys.argv[2], sys.argv[3], sys.argv[4], matcher=Slow())
print(result.loop.pairs, flush=True)
"""


def run_and_kill(tests, photos, output, moment):
    """Start a run as a process and kill it after so many seconds; returns whether it ended by itself."""
    arguments = [sys.executable, "-c", SLOW_RUN, tests, photos[0], photos[1], output]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()})
    process.stdout.readline()
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False
    return process.returncode == 0


def test_killed_at_random_moments_a_run_ends_with_the_same_files(photos, tmp_path, request):
    match_pairs(photos[0], photos[1], photos[2], matcher=FakeMatcher())
    expected, output, rng = content(photos[2]), tmp_path / "killed", random.Random(1)
    seen = 0
    for _ in range(3):
        ended = run_and_kill(request.path.parents[1], photos, output, rng.uniform(0.05, 0.5))
        store = RawStore(output / "matches-pdc_all.raw")
        assert len(store) >= seen  # nothing that was there is lost
        seen = len(store)
        assert not [path for path in output.glob("*.h5") if not h5py.is_hdf5(path)]
        if ended:
            break
    matcher = FakeMatcher()
    match_pairs(photos[0], photos[1], output, matcher=matcher)
    assert len(matcher.matched) == 28 - seen
    assert content(output) == expected


def test_sequences_are_ordered_as_people_number_them():
    names = [f"a/{i}.jpg" for i in (1, 10, 2, 3)] + ["b/1.jpg"]
    assert sequential_pairs(names, 1) == [("a/1.jpg", "a/2.jpg"), ("a/2.jpg", "a/3.jpg"), ("a/3.jpg", "a/10.jpg")]
    far = sequential_pairs([f"{i}.jpg" for i in range(9)], 3, quadratic=True)
    assert [b for a, b in far if a == "0.jpg"] == ["1.jpg", "2.jpg", "3.jpg", "4.jpg", "8.jpg"]


def test_cameras_are_paired_with_the_nearest_that_look_the_same_way():
    def pose(x, turned=False):
        rotation = np.diag([-1.0, 1, -1]) if turned else np.eye(3)
        return np.column_stack((rotation, -rotation @ [x, 0, 0]))

    poses = {"a": pose(0), "b": pose(1), "back": pose(0.1, turned=True), "far": pose(5)}
    pairs = nearest_pose_pairs(poses, 1)
    assert pairs == [("a", "b"), ("b", "a"), ("far", "b")]


def test_keypoints_carry_a_pixel_of_the_network_as_their_uncertainty(photos):
    images, pairs, output = photos
    settings = load_settings(MatchingSettings, None, ["dense.min_side=24"])
    result = match_pairs(images, pairs, output, settings, matcher=FakeMatcher())
    pair = RawStore(result.raw).pairs()[0]
    size = RawStore(result.raw).sizes(pair)[0]
    with h5py.File(result.features) as file:
        found = file[pair[0]]["keypoints"].attrs["uncertainty"]
    assert found == pytest.approx(min(size) / 24, rel=0.05)
    assert found > 1


def test_a_run_whose_scores_were_no_probabilities_is_not_gone_on_with(photos):
    """Version 0.1 held them below 0.573, and said nothing of it in its record."""
    images, pairs, output = photos
    before = {name: value for name, value in _made_by(MatchingSettings(), None, None).items() if name != "scores"}
    with open_raw_store(output / f"matches-pdc_{pairs.stem}.raw", before):
        pass
    with pytest.raises(SettingsError, match="scores: None -> probability"):
        match_pairs(images, pairs, output)


def test_a_run_of_the_earlier_default_strategy_says_how_to_go_on_with_it(photos):
    """Version 0.1 had dense.method=direct, and a setting of the search that is gone."""
    images, pairs, output = photos
    direct = load_settings(MatchingSettings, None, ["dense.method=direct"])
    matcher = FakeMatcher()
    match_pairs(images, pairs, output, direct, matcher=matcher)
    record = output / f"matches-pdc_{pairs.stem}.raw" / "settings.json"
    before = json.loads(record.read_text())
    before["dense"]["view_search"] = True
    record.write_text(json.dumps(before))
    (output / f"matches-pdc_{pairs.stem}.h5").unlink()
    said = r"\(dense.method: direct -> auto\): give dense.method=direct to go on with them, choose another output, or overwrite"
    with pytest.raises(SettingsError, match=said):
        match_pairs(images, pairs, output, matcher=FakeMatcher())
    again = FakeMatcher()
    match_pairs(images, pairs, output, direct, matcher=again)
    assert not again.matched


def test_other_images_of_the_same_names_are_not_answered_with_the_matches_of_the_first(photos, tmp_path):
    """A second folder of IMG_0001.jpg, IMG_0002.jpg, ... into the same output."""
    images, pairs, output = photos
    match_pairs(images, pairs, output, matcher=FakeMatcher())
    before = content(output)
    second = tmp_path / "second"
    shutil.copytree(images, second)  # the same pictures, of another time
    for path in second.rglob("*.png"):
        os.utime(path, (1, 1))
    matcher = FakeMatcher()
    match_pairs(second, pairs, output, matcher=matcher)
    assert matcher.encoded == []
    changed = sorted(second.rglob("*.png"))[2]
    write_image(changed, np.full((60, 80, 3), 7, np.uint8))
    with pytest.raises(OtherSettingsError, match=rf"other images of the same names .*{changed.name}.*or overwrite"):
        match_pairs(second, pairs, output, matcher=matcher)
    assert content(output) == before
    match_pairs(second, pairs, output, matcher=matcher, overwrite="all")
    assert len(matcher.encoded) == 8


def test_an_image_that_could_not_be_read_may_be_replaced(photos):
    images, pairs, output = photos
    name = sorted(images.rglob("*.png"))[3]
    whole = name.read_bytes()
    name.write_bytes(whole[:50])
    assert not match_pairs(images, pairs, output, matcher=FakeMatcher()).complete
    name.write_bytes(whole)
    assert match_pairs(images, pairs, output, matcher=FakeMatcher()).complete
