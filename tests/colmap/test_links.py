"""What holds a map together and what contradicts it, on made-up pairs."""

import dataclasses
import itertools

import numpy as np
import pytest
from pair_evidence import evidence

from pdc_sfm.colmap.mapping.evidence import PairEvidence
from pdc_sfm.colmap.mapping.links import find_links, proven_parts

RING = [(number, (number + 1) % 8) for number in range(8)]


def test_a_ring_of_strong_pairs_has_no_doubtful_link_whatever_small_pairs_say():
    pairs = [evidence(a, b, 900) for a, b in RING] + [evidence(1, 5, 80, 0.0), evidence(2, 6, 120, 0.1)]
    links = find_links(range(8), pairs)
    assert len(links) == 7
    assert not any(link.is_weak or link.is_contradicted for link in links)


def test_a_strong_pair_that_is_not_explained_contradicts_the_link_it_crosses():
    pairs = [evidence(0, 1, 900), evidence(1, 2, 900), evidence(2, 3, 400), evidence(1, 3, 300, 0.0)]
    (link,) = (link for link in find_links(range(4), pairs) if link.is_contradicted)
    assert link.part == {3}
    assert (link.against.first, link.against.second) == (1, 3)


@pytest.mark.parametrize(("second", "contradicted"), [(0, True), (500, False)])
def test_what_no_second_pair_confirms_is_contradicted_by_half_as_much(second, contradicted):
    pairs = [evidence(0, 1, 900), evidence(1, 2, 900), evidence(2, 3, 600), evidence(1, 3, 280, 0.0)]
    pairs += [evidence(0, 3, second)] if second else []
    assert any(link.is_contradicted for link in find_links(range(4), pairs)) == contradicted


@pytest.mark.parametrize(
    ("cells", "second", "weak"), [(90, 80, True), (250, 240, False), (250, 0, True), (450, 0, False)]
)
def test_a_link_needs_covered_cells_and_more_if_nothing_confirms_it(cells, second, weak):
    pairs = [evidence(a, b, 900) for a, b in ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5))] + [evidence(2, 3, cells)]
    pairs += [evidence(1, 4, second)] if second else []
    first = find_links(range(6), pairs)[0]
    assert first.is_weak == weak
    assert len(first.part) == 3


@pytest.mark.parametrize(
    ("count", "strongest", "weak"), [(20, 120, False), (19, 120, True), (20, 160, True), (20, 20, False)]
)
def test_many_wrong_pairs_tell_what_a_pair_must_cover_that_nothing_confirms(count, strongest, weak):
    chain = [evidence(number, number + 1, 250) for number in range(9)]
    apart = [pair for pair in itertools.combinations(range(10), 2) if pair[1] - pair[0] > 2][:count]
    wrong = [evidence(*pair, strongest if number == 0 else 20, 0.0) for number, pair in enumerate(apart)]
    assert len(wrong) == count
    assert {link.is_weak for link in find_links(range(10), chain + wrong)} == {weak}


@pytest.mark.parametrize(("cells", "weak"), [(190, True), (210, False)])
def test_small_wrong_pairs_do_not_prove_a_link_below_the_least(cells, weak):
    chain = [evidence(number, number + 1, cells) for number in range(9)]
    wrong = [evidence(*pair, 20, 0.0) for pair in itertools.combinations(range(10), 2) if pair[1] - pair[0] > 2]
    assert {link.is_weak for link in find_links(range(10), chain + wrong)} == {weak}


@pytest.mark.parametrize(("images", "weak"), [(4, False), (3, True)])
def test_where_images_have_few_keypoints_fewer_cells_prove_a_link_that_three_pairs_support(images, weak):
    pairs = [evidence(a, b, 150, occupied=400) for a, b in itertools.combinations(range(images), 2)]
    assert {link.is_weak for link in find_links(range(images), pairs)} == {weak}


def unmatched(first, second, cells, missed) -> PairEvidence:
    return dataclasses.replace(evidence(first, second, cells), shared=2 * cells, missed=missed)


def test_a_link_whose_sides_see_one_place_and_do_not_match_there_is_denied_and_no_other():
    pairs = [unmatched(a, b, 900, 5) for a, b in ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5))]
    pairs += [unmatched(2, 3, 700, 500), unmatched(0, 5, 300, 200), unmatched(1, 4, 250, 10)]
    denied = [link for link in find_links(range(6), pairs) if link.is_denied]
    assert [link.part in ({0, 1, 2}, {3, 4, 5}) for link in denied] == [True]
    assert denied[0].missed == pytest.approx(710 / (710 + 2500))
    assert proven_parts(range(6), pairs) == [{0, 1, 2}, {3, 4, 5}]


@pytest.mark.parametrize(("missed", "denied"), [(99, False), (101, True)])
def test_a_few_cells_that_do_not_match_deny_nothing(missed, denied):
    (link,) = find_links(range(2), [unmatched(0, 1, 200, missed)])
    assert link.is_denied == denied


BLOCKS = [*itertools.combinations(range(3), 2), *itertools.combinations(range(3, 6), 2)]
ACROSS = [(0, 3), (1, 4), (2, 5)]


def disagreeing(turns, cells=150) -> list[PairEvidence]:
    """Pairs of three images and three others that want the first of both turned so (degrees, about z) by the world's axes."""
    return [
        evidence(*pair, cells, 0.0, turn=(0.0, 0.0, float(np.radians(turn))))
        for pair, turn in zip(((0, 4), (1, 5), (2, 3)), turns)
    ]


@pytest.mark.parametrize(("turns", "contradicted"), [((90, 92, 88), True), ((90, 20, -70), False)])
def test_weak_pairs_that_agree_on_another_place_contradict_a_link_and_those_of_chance_do_not(turns, contradicted):
    pairs = [evidence(a, b, 900) for a, b in BLOCKS] + [evidence(a, b, 230) for a, b in ACROSS]
    links = find_links(range(6), pairs + disagreeing(turns))
    assert {len(link.part) for link in links if link.is_contradicted} == ({3} if contradicted else set())


def test_pairs_named_the_other_way_round_want_the_opposite_turn():
    pairs = [evidence(a, b, 900) for a, b in BLOCKS] + [evidence(a, b, 230) for a, b in ACROSS]
    there, back = disagreeing((90, 90, 90)), [evidence(4, 0, 150, 0.0, turn=(0.0, 0.0, -np.pi / 2))]
    assert any(link.is_contradicted for link in find_links(range(6), pairs + back + there[1:]))
    wrong = [evidence(4, 0, 150, 0.0, turn=(0.0, 0.0, np.pi / 2))]
    assert not any(link.is_contradicted for link in find_links(range(6), pairs + wrong + there[1:]))


def test_what_a_pair_alone_says_of_another_place_is_no_agreement():
    pairs = [evidence(a, b, 900) for a, b in BLOCKS] + [evidence(a, b, 230) for a, b in ACROSS]
    alone = disagreeing((90, 90, 90), cells=160)[:1]
    assert {link.alternative for link in find_links(range(6), pairs + alone)} == {0}
