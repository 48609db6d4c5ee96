"""Which pairs may decide where cameras stand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pdc_sfm.colmap.mapping.view_graph import Tracks, bottleneck_matches, supported_pairs

RING = [(n, (n + 1) % 8) for n in range(8)]  # eight images around a square, each overlapping the next

RING_OF_FOUR = [(0, 1), (1, 2), (2, 3), (3, 0)]


def strong(pairs, counts, share=0.2):
    """`supported_pairs` of pairs that have nothing in common."""
    ends = np.arange(2 * sum(counts)).reshape(-1, 2)
    return supported_pairs(pairs, np.split(ends, np.cumsum(counts)[:-1]), len(ends) * 2, share)


def test_a_pair_of_look_alikes_is_weak_next_to_the_way_around():
    assert strong([*RING, (1, 5)], [*[2000] * 8, 300]).tolist() == [True] * 8 + [False]


def test_a_pair_that_closes_a_loop_is_strong_if_it_is_like_the_others():
    assert strong([*RING, (1, 5)], [*[2000] * 8, 500]).all()


def test_what_links_an_image_best_is_strong_however_few_its_matches():
    pairs, matches = [(0, 1), (1, 2), (0, 2), (2, 9), (1, 9), (0, 9)], [5000, 4000, 3000, 40, 20, 3]
    assert strong(pairs, matches).tolist() == [True, True, True, True, True, False]


def test_without_pairs_there_is_nothing_to_say():
    assert supported_pairs([], [], 0, 0.2).shape == (0,)


@pytest.mark.parametrize(("joined", "is_strong"), [(0, False), (1, False), (4, True), (40, True)])
def test_a_pair_is_confirmed_by_points_that_the_way_around_joins_too(joined, is_strong):
    """Images 0, 1, 2 of 1000 keypoints each: the first 900 are of the same points, and image 0 and 2 share 40 matches."""
    same = np.arange(900)
    links = [np.stack((same, same + 1000), 1), np.stack((same + 1000, same + 2000), 1)]
    few = np.arange(40)
    wrong = np.stack((few, 2000 + few + 400), 1)  # a wall along, the same windows
    wrong[:joined, 1] = 2000 + few[:joined]
    found = supported_pairs([(0, 1), (1, 2), (0, 2)], [*links, wrong], 3000, 0.2)
    assert found.tolist() == [True, True, is_strong]


def test_pairs_beside_the_one_that_closes_a_loop_are_confirmed_by_it():
    """Four images in a ring, each point seen by two next to each other, and 30 by images 0, 3 and 2."""
    sizes = [450, 450, 450, 370]  # the last has fewest: it closes the loop
    ring = [
        np.stack((1000 * a + 450 + np.arange(n), 1000 * b + np.arange(n)), 1) for (a, b), n in zip(RING_OF_FOUR, sizes)
    ]
    seen = np.arange(900, 930)
    ring[2] = np.concatenate((ring[2], np.stack((2000 + seen, 3000 + seen), 1)))
    ring[3] = np.concatenate((ring[3], np.stack((3000 + seen, seen), 1)))
    beside = np.stack((seen, 2000 + seen), 1)
    pairs = [*RING_OF_FOUR, (0, 2)]
    assert supported_pairs(pairs, [*ring, beside], 4000, 0.6).all()
    assert supported_pairs(pairs, [*ring, np.add(beside, (0, 31))], 4000, 0.6).tolist() == [True] * 4 + [False]


def test_tracks_are_what_matches_join():
    tracks = Tracks(8)
    for matches in (np.array([[0, 3], [1, 4]]), np.zeros((0, 2), np.int64), np.array([[3, 6]])):
        tracks.join(matches)
    assert tracks.of(np.arange(8)).tolist() == [0, 1, 2, 0, 1, 5, 0, 7]


@given(st.lists(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=12), max_size=8))
def test_tracks_joined_pair_by_pair_are_the_components_of_all(pairs):
    tracks, edges = Tracks(30), np.array([match for pair in pairs for match in pair]).reshape(-1, 2)
    for pair in pairs:
        tracks.join(np.array(pair).reshape(-1, 2))
    graph = coo_array((np.ones(len(edges)), tuple(edges.T.astype(int))), shape=(30, 30))
    expected, found = connected_components(graph, directed=False)[1], tracks.of(np.arange(30))
    assert len(set(zip(expected.tolist(), found.tolist()))) == len(set(expected.tolist())) == len(set(found.tolist()))


def is_linked(pairs, kept, first, second) -> bool:
    a, b = np.array(pairs)[kept].T
    return len(set(connected_components(coo_array((np.ones(len(a)), (a, b)), shape=(12, 12)))[1][[first, second]])) == 1


@given(st.dictionaries(st.sampled_from(list(itertools.combinations(range(12), 2))), st.integers(0, 9), min_size=1))
def test_the_strongest_way_is_what_leaving_out_weaker_pairs_shows(graph):
    pairs, matches = list(graph), np.array(list(graph.values()))
    for (first, second), found in zip(pairs, bottleneck_matches(pairs, matches)):
        assert is_linked(pairs, matches >= found, first, second)
        assert not (matches > found).any() or not is_linked(pairs, matches > found, first, second)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_strong_pairs_connect_what_all_pairs_connect(share):
    rng = np.random.default_rng(3)
    pairs = [pair for pair in itertools.combinations(range(12), 2) if rng.random() < 0.3]
    matches = rng.integers(1, 1000, len(pairs))
    found = strong(pairs, matches, share)
    assert all(is_linked(pairs, found, *pair) for pair in pairs)
    assert found.all() == (share == 0)
