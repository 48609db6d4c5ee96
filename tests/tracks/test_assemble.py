"""The two hloc files: complete or not there, never of mixed settings, given keypoints untouched."""

import os

import h5py
import numpy as np
import pytest

from pdc_sfm.errors import FormatError, SettingsError, StorageError
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.store.journal import open_raw_store
from pdc_sfm.store.readers import open_features, open_matches
from pdc_sfm.tracks import hloc_tracks as rules
from pdc_sfm.tracks.assemble import Outputs, aggregate
from pdc_sfm.tracks.hloc_tracks import in_hloc_order
from pdc_sfm.tracks.settings import TrackSettings

SIZE = (320, 240)
HLOC = TrackSettings("hloc", 2, 8)


def points_in(views, seed=0, count=300):
    """The same random points seen by several cameras that differ by a shift, in pixel indices."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(20, 200, (count, 2))
    return {name: points + shift for name, shift in views.items()}


@pytest.fixture
def run(tmp_path):
    """Aggregates the pairs of three views a, b and c with given settings, into features.h5 and matches.h5."""
    seen = points_in({"db/a.jpg": 0, "db/b.jpg": 8, "q/c.jpg": 16})

    def call(pairs=(("db/a.jpg", "db/b.jpg"), ("db/b.jpg", "q/c.jpg")), matches="matches.h5", **options):
        tracks = options.pop("tracks", HLOC)
        references = options.pop("references", ())
        outputs = Outputs(tmp_path / "features.h5", tmp_path / matches, {"tracks": str(tracks)}, tracks, references)
        with open_raw_store(tmp_path / (matches + ".raw"), {}) as raw:
            for number, pair in enumerate(pairs):
                if pair not in raw and "bad" not in pair:
                    scores = np.random.default_rng(number).uniform(0.1, 0.5, 300)
                    raw.append(pair, RawMatches(seen[pair[0]], seen[pair[1]], scores), (SIZE, SIZE))
            return aggregate(raw, list(pairs), outputs, **options)

    call.folder = tmp_path
    return call


def content(folder, matches="matches.h5"):
    """All datasets of both files."""
    found = {}
    for path in (folder / "features.h5", folder / matches):
        with h5py.File(path) as file:
            file.visititems(
                lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
    return found


def assert_same_content(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_files_have_hlocs_names_and_types(run):
    summary = run()
    found = content(run.folder)
    assert found["db/b.jpg/keypoints"].dtype == np.float32
    np.testing.assert_array_equal(found["db/b.jpg/score"], found["db/b.jpg/scores"])
    np.testing.assert_array_equal(found["q/c.jpg/image_size"], SIZE)
    assert found["db-a.jpg/db-b.jpg/matches0"].dtype == np.int32
    assert found["db-a.jpg/db-b.jpg/matching_scores0"].dtype == np.float16
    assert (summary.images, summary.pairs, summary.missing, summary.fixed) == (3, 2, 0, 0)
    with open_matches(run.folder / "matches.h5") as file:
        total = sum(len(file.matches(*pair)[0]) for pair in [("db/a.jpg", "db/b.jpg"), ("q/c.jpg", "db/b.jpg")])
    assert total == summary.matches > 300


def test_matched_keypoints_agree_within_the_error_of_their_cells(run):
    run()
    with open_features(run.folder / "features.h5") as features, open_matches(run.folder / "matches.h5") as file:
        matches, _ = file.matches("db/a.jpg", "db/b.jpg")
        a, b = (features.keypoints(name).points[matches[:, i]] for i, name in enumerate(("db/a.jpg", "db/b.jpg")))
    assert np.abs(b - a - 8).max() <= 4  # each end within max_error = 2 of its keypoint


def test_a_second_call_finds_nothing_to_do(run):
    run()
    times = [path.stat().st_mtime_ns for path in run.folder.glob("*.h5")]
    assert run() is None
    assert [path.stat().st_mtime_ns for path in run.folder.glob("*.h5")] == times


def test_other_settings_are_refused_unless_overwriting(run):
    run()
    with pytest.raises(SettingsError, match="tracks"):
        run(tracks=TrackSettings("hloc", 4, 8))
    assert run(tracks=TrackSettings("hloc", 4, 8), overwrite=True) is not None
    assert run(tracks=TrackSettings("hloc", 4, 8)) is None


def test_a_crash_between_the_two_files_changes_nothing_in_the_end(run, monkeypatch):
    run()
    expected = content(run.folder)
    for path in run.folder.glob("*.h5"):
        path.unlink()
    replace = os.replace

    def crash(source, target):
        replace(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pdc_sfm.files.os.replace", crash)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert [path.name for path in run.folder.glob("*.h5")] == ["features.h5"]
    run()
    assert_same_content(content(run.folder), expected)


def test_a_full_disk_leaves_the_old_files_and_no_halves(run, monkeypatch):
    run()
    expected = content(run.folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(rules, "write_matches", full)
        with pytest.raises(StorageError, match=r"No space left on device.*make room"):
            run(overwrite=True)
    assert_same_content(content(run.folder), expected)
    assert not list(run.folder.glob("*.partial")) + list(run.folder.glob(".*.partial"))


def test_what_a_killed_process_left_is_removed(run):
    leftover = run.folder / ".matches.h5.12345.partial"
    leftover.write_bytes(b"half")
    run()
    assert not leftover.exists()


def test_given_keypoints_are_only_assigned_to_and_copied(run):
    grid = np.stack(np.meshgrid(np.arange(0, 320, 5), np.arange(0, 240, 5)), -1).reshape(-1, 2).astype(np.float32)
    with h5py.File(run.folder / "sp.h5", "w") as file:
        for name in ("db/a.jpg", "db/b.jpg"):
            file[f"{name}/keypoints"] = grid
            file[f"{name}/descriptors"] = np.zeros((256, len(grid)), np.float32)
    assert run(references=(run.folder / "sp.h5",), tracks=TrackSettings("hloc", 4, 4)).fixed == 2
    found = content(run.folder)
    np.testing.assert_array_equal(found["db/a.jpg/keypoints"], grid)
    assert "db/a.jpg/descriptors" not in found
    assert len(found["q/c.jpg/keypoints"]) < len(grid)
    assert run(references=(run.folder / "sp.h5",), tracks=TrackSettings("hloc", 4, 4)) is None


def test_localization_extends_the_feature_file_and_leaves_queries_unquantized(run):
    run(pairs=[("db/a.jpg", "db/b.jpg")])
    before = content(run.folder)
    query = {"pairs": [("q/c.jpg", "db/a.jpg"), ("q/c.jpg", "db/b.jpg")], "matches": "loc.h5"}
    loc = {**query, "references": (run.folder / "features.h5",), "tracks": TrackSettings("hloc", 2, 8, None)}
    run(**loc)
    after = content(run.folder, "loc.h5")
    for name in ("db/a.jpg/keypoints", "db/b.jpg/keypoints"):
        np.testing.assert_array_equal(after[name], before[name])
    seen = points_in({"db/a.jpg": 0, "db/b.jpg": 8, "q/c.jpg": 16})["q/c.jpg"].astype(np.float32)
    np.testing.assert_allclose(after["q/c.jpg/keypoints"], seen, rtol=0, atol=1 / 128)  # half of the journal's step
    assert run(**loc) is None
    assert_same_content(content(run.folder, "loc.h5"), after)


def test_pairs_without_matches_are_written_empty_and_made_good_later(run):
    pairs = [("db/a.jpg", "db/b.jpg"), ("db/b.jpg", "bad")]
    summary = run(pairs=pairs)
    assert summary.missing == 1
    found = content(run.folder)
    assert found["bad/keypoints"].shape == (0, 2)
    assert found["db-b.jpg/bad/matches0"].shape == (0,)
    for path in run.folder.glob("*.h5"):
        path.unlink()
    run(pairs=pairs[:1])
    np.testing.assert_array_equal(content(run.folder)["db/a.jpg/keypoints"], found["db/a.jpg/keypoints"])


def test_names_that_hloc_confuses_are_refused(run):
    with pytest.raises(FormatError, match="'/' and '-' are one"):
        run(pairs=[("bad", "db/b.jpg"), ("bad", "db-b.jpg")])


def test_the_order_of_votes_is_hlocs():
    pairs = [("a", "b"), ("c", "a"), ("a", "d"), ("b", "c")]
    assert in_hloc_order(pairs) == [("a", "d"), ("a", "b"), ("b", "c"), ("c", "a")]
