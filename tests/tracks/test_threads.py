"""Assembling with several threads or processes: the same files, what fails is said, and little is done ahead."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from h5_content import content

from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.store.journal import RawStore, open_raw_store
from pdc_sfm.tracks import assemble
from pdc_sfm.tracks.assemble import Outputs, aggregate
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.tracks.subprocesses import Process
from pdc_sfm.tracks.threads import Threads

SIZE = (200, 160)
NAMES = [f"{i}.jpg" for i in range(6)]
PAIRS = [(a, b) for a in NAMES for b in NAMES if a < b]


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Six views of a plane, shifted against each other, with noise."""
    folder, rng = tmp_path_factory.mktemp("threads") / "raw", np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(2, 120, 4), np.arange(2, 120, 4)), -1).reshape(-1, 2)
    with open_raw_store(folder, {}) as store:
        for a, b in PAIRS:
            there = grid + 7.3 * (int(b[0]) - int(a[0])) + rng.normal(0, 0.3, grid.shape)
            store.append((a, b), RawMatches(grid, there, rng.uniform(0.2, 0.5, len(grid))), (SIZE, SIZE))
    return RawStore(folder)


def outputs(folder, rule):
    return Outputs(folder / "features.h5", folder / "matches.h5", {}, TrackSettings(rule))


@pytest.fixture(params=["threads", "processes"])
def way(request, monkeypatch):
    """Processes are for many matches: here they begin with the first."""
    if request.param == "processes":
        monkeypatch.setattr(assemble, "MANY_MATCHES", 0)
    return request.param


@pytest.mark.parametrize("rule", ["flow", "hloc"])
def test_the_number_of_threads_or_processes_changes_nothing_in_the_files(raw, tmp_path, rule, way):
    for threads in (1, 4):
        aggregate(raw, PAIRS, outputs(tmp_path / str(threads), rule), threads=threads)
    one, four = content(tmp_path / "1"), content(tmp_path / "4")
    assert len(one) == 4 * len(NAMES) + 2 * len(PAIRS)
    assert one == four
    for name in ("features.h5", "matches.h5"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "4" / name).read_bytes()


def test_fixed_keypoints_get_the_same_matches_from_processes(raw, tmp_path, monkeypatch):
    """Images of an earlier run, new ones among themselves, and a query, which is paired with fixed images alone."""
    monkeypatch.setattr(assemble, "MANY_MATCHES", 0)
    earlier = [pair for pair in PAIRS if max(pair) < "2.jpg"]
    later = [pair for pair in PAIRS if "5.jpg" not in pair or min(pair) < "2.jpg"]
    for threads in (1, 3):
        aggregate(raw, earlier, outputs(tmp_path / str(threads), "flow"), threads=1)
        map_ = dataclasses.replace(
            outputs(tmp_path / str(threads), "flow"), matches=tmp_path / str(threads) / "more.h5"
        )
        assert aggregate(raw, later, map_, threads=threads).fixed == 2
    assert content(tmp_path / "1") == content(tmp_path / "3")


def test_damage_met_in_a_process_ends_the_run_and_leaves_no_file(raw, tmp_path, monkeypatch):
    monkeypatch.setattr(assemble, "MANY_MATCHES", 0)
    shutil.copytree(raw.folder, tmp_path / "raw")
    damaged = RawStore(tmp_path / "raw")
    segment = next((tmp_path / "raw").glob("*.matches"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    with pytest.raises(FormatError, match="damaged"):
        aggregate(damaged, PAIRS, outputs(tmp_path, "flow"), threads=2)
    assert not list(tmp_path.glob("*.h5"))


def test_a_process_that_is_killed_is_said():
    process = Process()
    assert process.call(abs, -3) == 3
    with pytest.raises(UserError, match="killed"):
        process.call(os.kill, process.call(os.getpid), signal.SIGKILL)
    process.close()


def test_processes_end_with_the_one_that_started_them_even_if_it_is_killed():
    start = (
        "from pdc_sfm.tracks.subprocesses import Process; p = Process(); print(p.call(abs, -3), flush=True); input()"
    )
    pipe = subprocess.PIPE
    parent = subprocess.Popen([sys.executable, "-c", start], stdin=pipe, stdout=pipe, stderr=pipe)
    assert parent.stdout.readline() == b"3\n"
    parent.kill()
    assert parent.communicate(timeout=60)[1] == b""  # of both: the end comes when neither is left


@pytest.mark.parametrize("rule", ["flow", "hloc"])
def test_damage_met_by_a_thread_ends_the_run_and_leaves_no_file(raw, tmp_path, rule, monkeypatch):
    def read(store, pair):
        raise FormatError("damaged")

    monkeypatch.setattr(RawStore, "read", read)
    with pytest.raises(FormatError, match="damaged"):
        aggregate(raw, PAIRS, outputs(tmp_path, rule), threads=3)
    assert not list(tmp_path.glob("*.h5"))
    assert not any(thread.name.startswith("assemble") for thread in threading.enumerate())


@pytest.mark.parametrize("count", [1, 3])
def test_results_come_in_order_and_no_more_than_asked_for_are_made_ahead(count):
    made = []
    with Threads(count) as threads:
        results = threads.map(lambda i: made.append(i) or i, range(100), 4)
        assert [next(results) for _ in range(10)] == list(range(10))
        assert len(made) <= 10 + 4
        assert list(results) == list(range(10, 100))
