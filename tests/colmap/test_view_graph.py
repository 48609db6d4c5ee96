"""Which pairs may decide where cameras stand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pdc_sfm.colmap.view_graph import strong_pairs, strongest_ways

RING = [(n, (n + 1) % 8) for n in range(8)]  # eight images around a square, each overlapping the next


def test_a_pair_of_look_alikes_is_weak_next_to_the_way_around():
    assert strong_pairs([*RING, (1, 5)], [*[2000] * 8, 300], 0.2).tolist() == [True] * 8 + [False]


def test_a_pair_that_closes_a_loop_is_strong_if_it_is_like_the_others():
    assert strong_pairs([*RING, (1, 5)], [*[2000] * 8, 500], 0.2).all()


def test_what_links_an_image_best_is_strong_however_few_its_matches():
    pairs, matches = [(0, 1), (1, 2), (0, 2), (2, 9), (1, 9), (0, 9)], [5000, 4000, 3000, 40, 20, 3]
    assert strong_pairs(pairs, matches, 0.2).tolist() == [True, True, True, True, True, False]


def test_without_pairs_there_is_nothing_to_say():
    assert strong_pairs([], [], 0.2).shape == (0,)


def is_linked(pairs, kept, first, second) -> bool:
    a, b = np.array(pairs)[kept].T
    return len(set(connected_components(coo_array((np.ones(len(a)), (a, b)), shape=(12, 12)))[1][[first, second]])) == 1


@given(st.dictionaries(st.sampled_from(list(itertools.combinations(range(12), 2))), st.integers(0, 9), min_size=1))
def test_the_strongest_way_is_what_leaving_out_weaker_pairs_shows(graph):
    pairs, matches = list(graph), np.array(list(graph.values()))
    for (first, second), found in zip(pairs, strongest_ways(pairs, matches)):
        assert is_linked(pairs, matches >= found, first, second)
        assert not (matches > found).any() or not is_linked(pairs, matches > found, first, second)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_strong_pairs_connect_what_all_pairs_connect(share):
    rng = np.random.default_rng(3)
    pairs = [pair for pair in itertools.combinations(range(12), 2) if rng.random() < 0.3]
    matches = rng.integers(1, 1000, len(pairs))
    strong = strong_pairs(pairs, matches, share)
    assert all(is_linked(pairs, strong, *pair) for pair in pairs)
    assert strong.all() == (share == 0)
