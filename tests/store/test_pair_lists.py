"""Pair lists as hloc writes them, and what is said about malformed ones."""

import pytest

from pdc_sfm.errors import FormatError
from pdc_sfm.store.pair_lists import read_pairs, read_retrieval, unique_pairs, write_pairs


def test_pairs_survive_a_round_trip(tmp_path):
    pairs = [("q/1.jpg", "db/2.jpg"), ("q/1.jpg", "db/3.jpg")]
    write_pairs(tmp_path / "p.txt", pairs)
    assert (tmp_path / "p.txt").read_text() == "q/1.jpg db/2.jpg\nq/1.jpg db/3.jpg\n"
    assert read_pairs(tmp_path / "p.txt") == pairs


def test_blank_lines_and_a_missing_last_newline_are_accepted(tmp_path):
    (tmp_path / "p.txt").write_text("a b\n\n c\td ")
    assert read_pairs(tmp_path / "p.txt") == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(("text", "line"), [("a b\na\n", 2), ("a b c\n", 1)])
def test_a_malformed_line_is_named_by_its_number(tmp_path, text, line):
    (tmp_path / "p.txt").write_text(text)
    with pytest.raises(FormatError, match=rf"p\.txt line {line}"):
        read_pairs(tmp_path / "p.txt")


def test_an_empty_or_missing_list_is_an_error(tmp_path):
    (tmp_path / "p.txt").write_text("\n")
    with pytest.raises(FormatError, match="lists no pair"):
        read_pairs(tmp_path / "p.txt")
    with pytest.raises(FormatError, match="cannot read"):
        read_pairs(tmp_path / "none.txt")


def test_names_with_spaces_cannot_be_written_and_nothing_is(tmp_path):
    with pytest.raises(FormatError, match="'my photo"):
        write_pairs(tmp_path / "p.txt", [("a", "b"), ("my photo.jpg", "b")])
    assert not (tmp_path / "p.txt").exists()


def test_duplicates_reversals_and_self_pairs_are_done_once():
    assert unique_pairs([("a", "b"), ("b", "a"), ("a", "a"), ("c", "a"), ("a", "b")]) == [("a", "b"), ("c", "a")]


def test_retrieval_keeps_the_order_and_knows_empty_rows(tmp_path):
    (tmp_path / "r.txt").write_text("q1 d3\nq2\nq1 d1\nq1 d3\n")
    assert read_retrieval(tmp_path / "r.txt") == {"q1": ["d3", "d1"], "q2": []}
