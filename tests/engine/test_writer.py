"""Keeping what was found beside computing what comes next: in order, nothing lost, errors at once."""

import threading

import pytest
from fake_matcher import FakeMatcher, write_images, write_list
from h5_content import content

from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.engine.work import Done, FoundMatches
from pdc_sfm.engine.writer import AHEAD, Writer
from pdc_sfm.errors import StorageError
from pdc_sfm.store.journal import RawStore


class Beginning(FakeMatcher):
    """Matches come later, asked for by another thread, as from a GPU."""

    identity, asynchronous = "FakeMatcher", True

    def __init__(self):
        super().__init__()
        self.threads = set()

    def begin(self, codes):
        def finish(pair):
            self.threads.add(threading.current_thread().name)
            return self.match(*pair)

        return [lambda pair=pair: finish(pair) for pair in codes]


@pytest.fixture
def photos(tmp_path):
    names = write_images(tmp_path / "photos", 6)
    return tmp_path / "photos", write_list(tmp_path / "all.txt", exhaustive_pairs(names))


def test_items_are_kept_in_order_beside_the_work_and_few_wait():
    kept, go, put = [], threading.Event(), []

    def keep(item):
        go.wait(10)
        kept.append(item)

    def work():
        with Writer(keep) as writer:
            for item in range(6):
                writer.put(item)
                put.append(item)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.3)
    assert len(put) == AHEAD  # the next waits
    assert not kept
    go.set()
    thread.join(10)
    assert kept == list(range(6))


def test_an_error_is_raised_at_the_next_item_and_nothing_after_it_is_kept():
    kept = []

    def keep(item):
        if item == 1:
            raise StorageError("the disk is full")
        kept.append(item)

    def work():
        with Writer(keep) as writer:
            for item in range(100):
                writer.put(item)

    with pytest.raises(StorageError, match="full"):
        work()
    assert kept == [0]


def test_what_was_computed_is_kept_when_the_work_is_interrupted():
    kept = []

    def work():
        with Writer(kept.append) as writer:
            writer.put("done")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert kept == ["done"]


@pytest.mark.parametrize("batch", [1, 4])
def test_matches_that_come_later_are_fetched_by_the_writer_and_are_the_same(photos, tmp_path, batch):
    matcher = Beginning()
    match_pairs(*photos, tmp_path / "later", MatchingSettings(batch=batch), matcher=matcher)
    match_pairs(*photos, tmp_path / "now", MatchingSettings(), matcher=FakeMatcher())
    assert content(tmp_path / "later") == content(tmp_path / "now")
    assert all(name.startswith("write") for name in matcher.threads)


def test_a_full_disk_ends_the_run_with_its_error_and_the_same_call_continues(photos, tmp_path, monkeypatch):
    append = RawStore.append

    def full(self, *record):
        if len(self) == 4:
            raise StorageError("no room")
        append(self, *record)

    monkeypatch.setattr(RawStore, "append", full)
    with pytest.raises(StorageError, match="no room"):
        match_pairs(*photos, tmp_path / "a", matcher=FakeMatcher())
    monkeypatch.undo()
    matcher = FakeMatcher()
    match_pairs(*photos, tmp_path / "a", matcher=matcher)
    assert len(matcher.matched) == 15 - 4


def test_only_matches_go_to_another_process():
    import pickle

    done = Done(found=[FoundMatches(("a", "b"), lambda: [1, 2], ((1, 1), (1, 1)))])
    assert pickle.loads(pickle.dumps(done)).found[0].matches == [1, 2]
