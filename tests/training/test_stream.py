"""A stream of batches that depends on its seed and place alone."""

import itertools

import numpy as np
import pytest
from photo_fakes import FailingPhotos, WavePhotos

from pdc_sfm.errors import UserError
from pdc_sfm.training.pairs import PairSettings
from pdc_sfm.training.stream import PairStream
from pdc_sfm.training.workers import in_order

SETTINGS = PairSettings(size=(64, 64), max_size=(96, 128), unrelated=0.3)
PHOTOS = WavePhotos(3, (120, 140))


def same(one, other) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def test_a_stream_resumed_anywhere_goes_on_as_if_never_stopped():
    whole = list(itertools.islice(PairStream(PHOTOS, None, SETTINGS, 5, 2), 4))
    resumed = list(itertools.islice(PairStream(PHOTOS, None, SETTINGS, 5, 2, start=2), 2))
    assert all(same(one, other) for one, other in zip(whole[2:], resumed))
    assert not same(whole[0], whole[1])


def test_items_are_those_of_the_batches_and_another_seed_gives_others():
    stream = PairStream(PHOTOS, None, SETTINGS, 5, 2)
    batch, pair = stream.batch(3), stream.pair(7)
    assert np.array_equal(batch.query[1], pair.query)
    assert np.array_equal(batch.flow[1], pair.flow)
    assert not np.array_equal(PairStream(PHOTOS, None, SETTINGS, 6, 2).pair(7).query, pair.query)


def test_batches_take_sizes_between_the_two_given_in_steps_of_32():
    stream = PairStream(PHOTOS, None, SETTINGS, 0, 1)
    sizes = {stream.size(n) for n in range(100)}
    assert sizes == {(h, w) for h in (64, 96) for w in (64, 96, 128)}


def test_workers_deliver_the_same_batches_in_the_same_order():
    alone = itertools.islice(PairStream(PHOTOS, None, SETTINGS, 5, 2, start=1), 5)
    stream = iter(PairStream(PHOTOS, None, SETTINGS, 5, 2, start=1, workers=2))
    assert all(same(one, other) for one, other in zip(alone, stream))
    stream.close()


def test_several_trainers_share_the_batches_out():
    both = list(itertools.islice(PairStream(PHOTOS, None, SETTINGS, 5, 1), 4))
    second = list(itertools.islice(PairStream(PHOTOS, None, SETTINGS, 5, 1, start=1, step=2), 2))
    assert same(second[0], both[1])
    assert same(second[1], both[3])


def test_a_failure_in_a_worker_is_raised_here_with_its_cause():
    stream = iter(PairStream(FailingPhotos(2, (100, 100)), None, SETTINGS, 0, 1, workers=1))
    with pytest.raises(RuntimeError, match="the disk is gone"):
        next(stream)


def test_items_end_where_they_should_with_and_without_workers():
    assert list(in_order(str, 2, 9, 3)) == ["2", "5", "8"]
    assert list(in_order(str, 2, 9, 3, workers=2)) == ["2", "5", "8"]


def test_tensors_are_as_the_network_wants_them():
    batch = PairStream(PHOTOS, None, PairSettings(size=(64, 96)), 0, 2).batch(0)
    tensors = batch.tensors()
    assert tensors["reference"].shape == tensors["query"].shape == (2, 3, 64, 96)
    assert tensors["reference"][1, 2, 10, 20].item() == pytest.approx(batch.reference[1, 10, 20, 2] / 255)
    assert tensors["flow"].shape == (2, 2, 64, 96)
    assert tensors["flow"][0, 1, 10, 20].item() == batch.flow[0, 10, 20, 1]
    assert tensors["mask"].shape == tensors["visible"].shape == (2, 64, 96)


def test_one_photograph_cannot_give_unrelated_pairs():
    with pytest.raises(UserError, match="at least two photographs"):
        PairStream(WavePhotos(1), None, SETTINGS, 0, 1)
