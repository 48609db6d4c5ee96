"""Items made by other processes arrive as if made here."""

import functools
import itertools
import time

import numpy as np
import pytest
from photo_fakes import VanishingPhotos, WavePhotos

from pdc_sfm.errors import UserError
from pdc_sfm.processes import in_order
from pdc_sfm.synthetic.pairs import SyntheticPairSettings, make_pair

SETTINGS = SyntheticPairSettings(size=(64, 96), unrelated=0.3)


def pair(photos, number: int):
    return make_pair(photos, None, SETTINGS, np.random.default_rng([5, number]))


def slow_when_even(number: int) -> int:
    time.sleep(0.05 * (number % 2 == 0))
    return number


def fails_at_three(number: int) -> int:
    return 1 // (3 - number)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_items_come_in_order_from_start_to_stop(workers):
    assert list(in_order(slow_when_even, 2, 11, 3, workers)) == [2, 5, 8]


def test_workers_make_the_same_pairs():
    make = functools.partial(pair, WavePhotos(3, (120, 140)))
    theirs = in_order(make, 4, workers=2)
    for mine, other in zip(map(make, itertools.count(4)), itertools.islice(theirs, 5)):
        assert all(np.array_equal(getattr(mine, name), getattr(other, name)) for name in vars(mine))
    theirs.close()


def test_a_stream_that_is_left_ends_its_workers():
    import multiprocessing

    before = set(multiprocessing.active_children())
    stream = in_order(abs, workers=1)  # no end
    assert next(stream) == 0
    assert len(set(multiprocessing.active_children()) - before) == 1
    stream.close()
    assert set(multiprocessing.active_children()) == before


def test_a_fault_in_a_worker_is_raised_here_in_its_turn_with_its_cause():
    stream = in_order(fails_at_three, 2, workers=1)
    assert next(stream) == 1
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        next(stream)


@pytest.mark.parametrize("workers", [0, 1])
def test_what_the_user_can_put_right_stays_a_user_error(workers):
    stream = in_order(functools.partial(pair, VanishingPhotos(2, (100, 100))), workers=workers)
    with pytest.raises(UserError, match=r"cannot read image a\.jpg"):
        next(stream)


def test_a_killed_worker_is_reported_not_waited_for():
    import multiprocessing
    import os
    import signal

    before = set(multiprocessing.active_children())
    stream = in_order(abs, workers=1)
    next(stream)
    (worker,) = set(multiprocessing.active_children()) - before
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="was killed"):
        list(stream)  # what was already made, then the end
