"""Pair and retrieval lists, whatever stands in them: read as written, or refused by a line that names the place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_input import ESCAPES, damaged_text, examples, lines_of, names, refused_or

from pdc_sfm.errors import FormatError
from pdc_sfm.retrieval.image_lists import read_names
from pdc_sfm.store.pair_lists import read_pairs, read_retrieval, write_pairs

GOOD = "# pairs\nq/1.jpg db/2.jpg\n\nq/1.jpg db/ü3.jpg\n-q/2.jpg #db/2.jpg\n"
LISTED = [("q/1.jpg", "db/2.jpg"), ("q/1.jpg", "db/ü3.jpg"), ("-q/2.jpg", "#db/2.jpg")]


def is_below(name):
    parts = name.split("/")
    return not ({"", ".", ".."} & set(parts)) and "\0" not in name


@examples(150)
@given(st.lists(st.tuples(names(), names()), min_size=1, max_size=3))
def test_what_is_written_is_read_again_or_refused(tmp_path, pairs):
    path = tmp_path / "p.txt"
    path.unlink(missing_ok=True)
    try:
        write_pairs(path, pairs)
    except FormatError:
        assert not path.exists()
        return
    assert read_pairs(path) == pairs
    assert read_retrieval(path) == {q: list(dict.fromkeys(d for p, d in pairs if p == q)) for q, _ in pairs}


def test_the_good_list_is_read_in_full(tmp_path):
    for form in (GOOD, GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD):
        assert read_pairs(lines_of(tmp_path / "p.txt", form)) == LISTED


@examples(200)
@given(st.one_of(damaged_text(GOOD), st.text(max_size=40), st.binary(max_size=40).map(lambda b: b.decode("latin1"))))
def test_a_list_with_junk_is_read_as_lines_of_two_names_or_refused(tmp_path, text):
    path = lines_of(tmp_path / "p.txt", text)
    pairs = refused_or(lambda: read_pairs(path))
    rows = [line.split() for line in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    rows = [tuple(row) for row in rows if row and not row[0].startswith("#")]
    assert pairs is None or pairs == rows
    for pair in pairs or ():
        assert all(map(is_below, pair))
    retrieved = refused_or(lambda: read_retrieval(path))
    assert retrieved is None or set(retrieved) == {row[0] for row in rows}
    found = refused_or(lambda: read_names(path, tmp_path))
    assert found is None or all(map(is_below, found))


@pytest.mark.parametrize("bad", [name for name in ESCAPES if name.strip() and name.isprintable()])
def test_a_name_that_leaves_the_image_folder_is_named_with_its_line(tmp_path, bad):
    path = lines_of(tmp_path / "p.txt", f"a b\n\na {bad}\n")
    for read in (read_pairs, read_retrieval):
        with pytest.raises(FormatError, match=r"p\.txt line 3: .*(below the image folder|not a name)"):
            read(path)
    with pytest.raises(FormatError, match=r"p\.txt line 1: .*below the image folder"):
        read_names(lines_of(path, f"{bad} PINHOLE\n"), tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "p.txt").write_bytes(b"a b\n\xff\xfe c\n")
    for read in (read_pairs, read_retrieval, lambda path: read_names(path, tmp_path)):
        with pytest.raises(FormatError, match="cannot read"):
            read(tmp_path / "p.txt")


@pytest.mark.parametrize("name", ["#1.jpg", "\ufeffa.jpg"])
def test_a_name_that_would_be_read_as_a_comment_is_not_written_first(tmp_path, name):
    with pytest.raises(FormatError, match="would be a comment"):
        write_pairs(tmp_path / "p.txt", [(name, "b")])
    write_pairs(tmp_path / "p.txt", [("b", name)])
    assert read_pairs(tmp_path / "p.txt") == [("b", name)]
