"""Assembling with several threads: the same files, what fails is said, and little is done ahead."""

import threading

import numpy as np
import pytest
from h5_content import content

from pdc_sfm.errors import FormatError
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.store.journal import RawStore, open_raw_store
from pdc_sfm.tracks.assemble import Outputs, aggregate
from pdc_sfm.tracks.settings import TrackSettings
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


@pytest.mark.parametrize("rule", ["flow", "hloc"])
def test_the_number_of_threads_changes_nothing_in_the_files(raw, tmp_path, rule):
    for threads in (1, 4):
        aggregate(raw, PAIRS, outputs(tmp_path / str(threads), rule), threads=threads)
    one, four = content(tmp_path / "1"), content(tmp_path / "4")
    assert len(one) == 4 * len(NAMES) + 2 * len(PAIRS)
    assert one == four


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
