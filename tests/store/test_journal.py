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
from pdc_sfm.store import journal
from pdc_sfm.store.journal import CountStore, MatchCount, RawStore, open_raw_store, open_store

SIZES = ((640, 480), (800, 600))


def some_matches(seed, count=20):
    rng = np.random.default_rng(seed)
    return RawMatches(rng.random((count, 2)), rng.random((count, 2)), rng.random(count))


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
        ends = [
            store._places[pair].offset + store._places[pair].names_bytes + 20 * store.count(pair)
            for pair in store.pairs()
        ]
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


def test_stores_of_the_version_before_are_read(tmp_path):
    matches = some_matches(0)
    body = b"a\0b\0" + b"".join(
        x.astype("<f4").tobytes() for x in (matches.keypoints0, matches.keypoints1, matches.scores)
    )
    header = struct.pack("<4s7I", b"PDM1", 4, 20, *SIZES[0], *SIZES[1], zlib.crc32(body))
    (tmp_path / "00000.matches").write_bytes(header + body)
    assert_same(RawStore(tmp_path).read(("a", "b")), matches)


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
        "        for i in range(9): store.append((f'a{i}', 'b'), some_matches(i), SIZES)\n"
        "    except StorageError as error: print(error)\n"
    )
    arguments = [sys.executable, "-c", code, tmp_path / "raw", str(__file__).rpartition("/")[0]]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    assert "The 4 finished pairs are kept: make room and run the same command again" in said
    store = RawStore(tmp_path / "raw")
    assert len(store) == 4  # a record of 20 matches has 32 + 4 + 400 bytes
    for i in range(4):
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
