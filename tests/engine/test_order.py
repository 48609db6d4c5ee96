"""Pairs are ordered so that codes are reused, and the cache lets go of what is needed latest."""

import numpy as np
import pytest

from pdc_sfm.engine.cache import CodeCache, parse_bytes
from pdc_sfm.engine.order import order_pairs
from pdc_sfm.errors import SettingsError


class Code:
    def __init__(self, nbytes=1):
        self.nbytes = nbytes


def encodings(pairs, order, capacity):
    """How often images are encoded when pairs are matched in an order with room for so many codes."""
    steps = pairs[order].tolist()
    cache = CodeCache(steps, capacity)
    for step in steps:
        for image in step:
            if cache.get(image) is None:
                cache.put(image, Code())
            assert cache.bytes <= capacity
        cache.finish_step()
    assert cache.bytes == 0  # nothing is kept that nobody needs
    return cache.misses


def ring(count, reach):
    return np.array([(i, (i + k) % count) for i in range(count) for k in range(1, reach + 1)])


def test_every_pair_comes_once():
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(0, 40, (300, 2)), 1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    for capacity in (1, 2, 5, 100):
        assert sorted(order_pairs(pairs, capacity)) == list(range(len(pairs)))
    assert len(order_pairs(np.zeros((0, 2), int), 10)) == 0


def test_a_shuffled_ring_needs_hardly_more_than_one_encoding_an_image():
    pairs = ring(300, 5)
    np.random.default_rng(0).shuffle(pairs)
    assert encodings(pairs, order_pairs(pairs, 20), 20) <= 1.05 * 300
    assert encodings(pairs, np.arange(len(pairs)), 20) > 5 * 300


def test_separate_scenes_are_done_one_after_the_other():
    scene = np.array([(i, j) for i in range(10) for j in range(i)])
    pairs = np.concatenate([scene + 10 * k for k in range(5)])
    np.random.default_rng(0).shuffle(pairs)
    assert encodings(pairs, order_pairs(pairs, 10), 10) == 50


def test_the_order_is_the_same_every_time():
    pairs = ring(50, 3)
    np.testing.assert_array_equal(order_pairs(pairs, 10), order_pairs(pairs.copy(), 10))


def test_the_real_list_needs_fewer_encodings_than_spectral_bisection(shared):
    lines = (shared / "data/aachen/hloc_pairs/pairs-db-covis20.txt").read_text().split()
    numbers = {name: i for i, name in enumerate(dict.fromkeys(lines))}
    pairs = np.sort(np.array([numbers[name] for name in lines]).reshape(-1, 2), 1)
    pairs = np.unique(pairs, axis=0)
    assert (len(numbers), len(pairs)) == (4328, 56717)
    assert encodings(pairs, order_pairs(pairs, 100), 100) / 4328 < 1.79


def test_the_cache_lets_go_of_what_is_needed_latest():
    cache = CodeCache([(0, 1), (0, 2), (2, 3), (0, 1)], 2)
    for image in (0, 1):
        cache.put(image, Code())
    cache.finish_step()
    cache.put(2, Code())  # 1 is needed later than 0
    assert [image in cache for image in (0, 1, 2)] == [True, False, True]


def test_large_codes_count_by_their_bytes():
    cache = CodeCache([(0, 1), (2, 3), (0, 1), (2, 3)], 100)
    cache.put(0, Code(60))
    cache.put(1, Code(30))
    cache.finish_step()
    cache.put(2, Code(50))
    assert cache.bytes == 80
    cache.put(3, Code(1000))  # never fits
    assert cache.bytes <= 100


@pytest.mark.parametrize(
    ("text", "expected"), [("8GB", 8e9), ("500 mb", 5e8), ("1.5GiB", 1.5 * 2**30), ("1024", 1024), ("2T", 2e12)]
)
def test_memory_is_written_as_people_write_it(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["lots", "8 GBB", "-1GB", "", "iB"])
def test_a_wrong_size_is_refused(text):
    with pytest.raises(SettingsError, match="8GB"):
        parse_bytes(text)


def test_a_pair_may_come_in_both_orders():
    pairs = np.array([(0, 1), (1, 2), (1, 0), (2, 0), (0, 2)])
    assert sorted(order_pairs(pairs, 2)) == [0, 1, 2, 3, 4]
