"""Raw matches survive kills, full disks and second processes, and are never mixed with those of other settings."""

import resource
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from pdc_sfm.errors import BusyError, FormatError, SettingsError
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.store import journal, packing
from pdc_sfm.store.journal import CountStore, MatchCount, RawStore, open_raw_store, open_store

SIZES = ((640, 480), (800, 600))


def some_matches(seed, count=20):
    """At places that a journal keeps to the last bit."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 64 * 480, (2, count, 2)) / 64
    return RawMatches(*places, rng.integers(0, 4096, count) / np.float32(4095))


def assert_same(one, other):
    for name in ("keypoints0", "keypoints1", "scores"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.fixture
def filled(tmp_path):
    """A store of three pairs, one of them without matches."""
    with open_raw_store(tmp_path / "raw", {"a": 1}) as store:
        store.append(("x", "y"), some_matches(0), SIZES)
        store.append(("db/ü 1.jpg", "y"), some_matches(1), SIZES)
        store.append(("x", "z"), RawMatches.empty(), SIZES)
    return tmp_path / "raw"


def test_what_was_appended_is_read_again(filled):
    store = RawStore(filled)
    assert store.pairs() == [("x", "y"), ("db/ü 1.jpg", "y"), ("x", "z")]
    assert_same(store.read(("db/ü 1.jpg", "y")), some_matches(1))
    assert len(store.read(("x", "z"))) == 0
    assert store.sizes(("x", "y")) == SIZES
    assert store.count(("x", "y")) == 20
    assert ("y", "z") not in store


def test_a_pair_is_found_in_the_other_order_too(filled):
    store = RawStore(filled)
    assert ("y", "x") in store
    assert_same(store.read(("y", "x")), some_matches(0).swapped())
    assert store.sizes(("y", "x")) == SIZES[::-1]


def test_cut_anywhere_only_the_last_pair_is_lost_and_the_store_goes_on(filled):
    segment = filled / "00000.matches"
    whole = segment.read_bytes()
    with open_raw_store(filled, {"a": 1}) as store:
        ends = [store._places[pair].offset + store._places[pair].body_bytes for pair in store.pairs()]
    assert ends[-1] == len(whole)
    for size in [*range(0, len(whole), 97), ends[0], ends[0] + 1, ends[1] - 1]:
        segment.write_bytes(whole[:size])
        kept = sum(end <= size for end in ends)
        with open_raw_store(filled, {"a": 1}) as store:
            assert len(store) == kept
            store.append(("new", "pair"), some_matches(5), SIZES)
        store = RawStore(filled)
        assert len(store) == kept + 1
        assert_same(store.read(("new", "pair")), some_matches(5))
        if kept:
            assert_same(store.read(("x", "y")), some_matches(0))


def test_a_flipped_bit_in_the_last_segment_is_noticed(filled):
    segment = filled / "00000.matches"
    data = bytearray(segment.read_bytes())
    data[60] ^= 1
    segment.write_bytes(data)
    store = RawStore(filled)
    assert store.pairs() == [("db/ü 1.jpg", "y"), ("x", "z")]  # the others are whole
    assert_same(store.read(("db/ü 1.jpg", "y")), some_matches(1))


def test_every_byte_of_a_record_is_under_its_checksum(tmp_path):
    for kind in (RawStore, CountStore):
        folder = tmp_path / kind.__name__
        with open_store(kind, folder, {}) as store:
            store.append(("a", "b"), some_matches(0, 3), SIZES)
        segment = folder / "00000.matches"
        whole = segment.read_bytes()
        for place in range(len(whole)):
            segment.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
            assert len(kind(folder)) == 0
            with open_store(kind, folder, {}) as store:
                store.append(("a", "b"), some_matches(0, 3), SIZES)
            assert kind(folder).count(("a", "b")) == 3
            assert kind(folder).sizes(("a", "b")) == SIZES


def test_stores_of_versions_before_are_read_and_continued(tmp_path):
    matches = some_matches(0)
    arrays = b"".join(x.astype("<f4").tobytes() for x in (matches.keypoints0, matches.keypoints1, matches.scores))
    first, second = b"a\0b\0" + arrays, b"c\0d\0" + arrays
    header1 = struct.pack("<4s7I", b"PDM1", 4, 20, *SIZES[0], *SIZES[1], zlib.crc32(first))
    header2 = struct.pack("<4s6I", b"PDM2", 4, 20, *SIZES[0], *SIZES[1])
    header2 += struct.pack("<I", zlib.crc32(header2 + second))
    (tmp_path / "00000.matches").write_bytes(header1 + first + header2 + second)
    with open_raw_store(tmp_path, {}) as store:
        store.append(("e", "f"), matches, SIZES)
    store = RawStore(tmp_path)
    assert store.pairs() == [("a", "b"), ("c", "d"), ("e", "f")]
    for pair in store.pairs():
        assert_same(store.read(pair), matches)


def dense_matches(width=160, height=120):
    """As a network gives them for a camera that turned and came nearer: cells of the first image, then of the second."""
    y, x = np.mgrid[:height, :width].reshape(2, -1)
    cells = np.stack((4.1 * x + 1.55, 4.1 * y + 1.55), 1)
    rng = np.random.default_rng(0)
    there = cells @ [[1.2, 0.1], [-0.1, 1.2]] - 40 + rng.normal(0, 0.3, cells.shape)
    confidence = rng.beta(5, 1, len(cells))
    back = RawMatches(there, cells, confidence)
    return RawMatches(*(np.concatenate((getattr(back.swapped(), n), getattr(back, n))) for n in back.__dict__))


def test_a_dense_match_takes_no_more_than_8_bytes_and_moves_less_than_a_fiftieth_of_a_pixel(tmp_path):
    matches = dense_matches()
    with open_raw_store(tmp_path, {}) as store:
        store.append(("a", "b"), matches, SIZES)
        kept = store.read(("a", "b"))
    assert (tmp_path / "00000.matches").stat().st_size <= 8 * len(matches)
    for one, other in ((kept.keypoints0, matches.keypoints0), (kept.keypoints1, matches.keypoints1)):
        assert np.linalg.norm(one - other, axis=1).max() < 0.02
    assert np.abs(kept.scores - matches.scores).max() < 1e-3


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1e9, 1e6])
def test_what_packing_would_change_is_kept_as_it_is(tmp_path, odd):
    matches = some_matches(3)
    matches.keypoints1[4, 1] = odd
    with open_raw_store(tmp_path, {}) as store:
        store.append(("a", "b"), matches, SIZES)
        store.append(("c", "d"), RawMatches(matches.keypoints0, matches.keypoints0, 7 * matches.scores), SIZES)
    assert_same(RawStore(tmp_path).read(("a", "b")), matches)
    np.testing.assert_array_equal(RawStore(tmp_path).read(("c", "d")).scores, 7 * matches.scores)


def test_bytes_of_another_number_of_matches_are_refused():
    for count in (0, 19, 21):
        with pytest.raises(ValueError, match=f"not {count} matches"):
            packing.unpack(packing.pack(some_matches(0)), count)


def test_damage_in_an_older_segment_is_named_when_it_is_read(filled, monkeypatch):
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 100)
    with open_raw_store(filled, {"a": 1}) as store:
        store.append(("p", "q"), some_matches(7), SIZES)
    data = bytearray((filled / "00000.matches").read_bytes())
    data[200] ^= 1
    (filled / "00000.matches").write_bytes(data)
    store = RawStore(filled)
    assert_same(store.read(("p", "q")), some_matches(7))
    with pytest.raises(FormatError, match=r"00000\.matches is damaged at the pair x y"):
        store.read(("x", "y"))


def test_other_settings_are_refused_and_named(filled):
    with pytest.raises(SettingsError, match="a: 1 -> 2"), open_raw_store(filled, {"a": 2}):
        pass
    with open_raw_store(filled, {"a": 2}, overwrite=True) as store:
        assert len(store) == 0


def test_a_second_process_is_told_that_the_first_is_writing(filled):
    code = (
        "import sys\nfrom pdc_sfm.errors import BusyError\nfrom pdc_sfm.store.journal import open_raw_store\n"
        "try:\n    with open_raw_store(sys.argv[1], {'a': 1}): print('entered')\n"
        "except BusyError as error: print('busy:', error)\n"
    )

    def second():
        return subprocess.run([sys.executable, "-c", code, filled], capture_output=True, text=True, check=True).stdout

    with open_raw_store(filled, {"a": 1}):
        assert second().startswith("busy: another process is writing")
    assert second() == "entered\n"


def test_a_full_disk_is_said_and_loses_no_finished_pair(tmp_path):
    code = (
        "import resource, sys\nsys.path.insert(0, sys.argv[2])\nfrom test_journal import SIZES, some_matches\n"
        "from pdc_sfm.errors import StorageError\nfrom pdc_sfm.store.journal import open_raw_store\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "with open_raw_store(sys.argv[1], {}) as store:\n"
        "    try:\n"
        "        for i in range(20): store.append((f'a{i}', 'b'), some_matches(i), SIZES)\n"
        "    except StorageError as error: print(error)\n"
    )
    arguments = [sys.executable, "-c", code, tmp_path / "raw", str(__file__).rpartition("/")[0]]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    store = RawStore(tmp_path / "raw")
    assert f"The {len(store)} finished pairs are kept: make room and run the same command again" in said
    assert 2 <= len(store) <= 7  # random places hardly shrink: a record of 20 matches has about 36 + 4 + 250 bytes
    for i in range(len(store)):
        assert_same(store.read((f"a{i}", "b")), some_matches(i))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 2000


def test_a_busy_store_can_be_waited_for(filled):
    with open_raw_store(filled, {"a": 1}), pytest.raises(BusyError), open_raw_store(filled, {"a": 1}):
        pass
    with open_raw_store(filled, {"a": 1}, wait=True) as store:
        assert len(store) == 3


def test_counts_are_of_their_own_direction(tmp_path):
    with open_store(CountStore, tmp_path / "counts", {}) as store:
        store.append(("a", "b"), MatchCount(5), ((4, 3), (8, 6)))
        assert ("a", "b") in store
        assert ("b", "a") not in store
        store.append(("b", "a"), MatchCount(7), ((8, 6), (4, 3)))
        assert (store.count(("a", "b")), store.count(("b", "a"))) == (5, 7)


def test_a_kill_while_an_old_store_is_removed_leaves_none_of_its_pairs_to_new_settings(filled, monkeypatch):
    def killed(folder, **_):  # after the first file, whichever that is
        if folder.exists():
            (folder / "settings.json").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt), open_raw_store(filled, {"a": 2}, overwrite=True):
            pass
    with open_raw_store(filled, {"a": 2}) as store:
        assert len(store) == 0
