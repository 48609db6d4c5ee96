"""The page of `make bench`: losses, gaps and a loaded machine are said in words, not left to be found."""

import pytest
from results_page import page, table
from rows import Row
from run import Outcome, last_line

FASTER = Row("others", "seconds a pair", 3.0, "1 s", "LoFTR: 3 s")
SLOWER = Row("others", "seconds a pair in a list", 0.25, "1 s", "SIFT: 250 ms")
MISSING = Row("others", "LoFTR", None, "skipped", note="kornia is not installed")


def test_ratios_come_first_and_a_loss_is_named():
    lines = table([FASTER, SLOWER])
    assert lines[0].startswith("| ratio |")
    assert lines[2].startswith("| 3.0 x |")
    assert lines[3].startswith("| **loses: 0.25 x** |")


@pytest.mark.parametrize("kind", ["share", "slope"])
def test_a_small_share_or_slope_is_no_loss(kind):
    assert not Row("growth", "memory", 0.02, "", kind=kind).loses


def test_the_page_lists_what_is_lost_and_what_was_not_measured():
    text = page({"processor": "some"}, [Outcome("others", [FASTER, SLOWER, MISSING])], quick=False)
    assert "Ours loses in 1 of 2 rows:\n- seconds a pair in a list: 1 s, SIFT: 250 ms" in text
    assert "Not measured:\n- others, LoFTR: skipped, kornia is not installed" in text


def test_a_missed_aim_is_said_before_the_table():
    row = Row("match run", "time outside the network", 0.376, "", "**missed**: less than 10 %", kind="share")
    text = page({}, [Outcome("match_time", [row])], quick=False)
    assert "Aims that were missed:\n- time outside the network: 38 %, aim less than 10 %" in text.split("| ratio")[0]


def test_a_loaded_machine_is_said_at_the_top_and_a_quiet_one_is_not():
    loaded = page({}, [Outcome("a", [FASTER], busy=0.02), Outcome("b", [SLOWER], busy=0.6)], quick=False)
    assert "loaded machine: others used up to 60% of the cores (before step b)" in loaded.split("|")[0]
    assert "loaded machine" not in page({}, [Outcome("a", [FASTER], busy=0.02)], quick=False)


def test_a_step_measured_at_another_time_than_the_whole_says_so():
    outcomes = [Outcome("a", [FASTER], when="Monday, commit 1"), Outcome("b", [SLOWER], when="Tuesday, commit 2")]
    text = page({"date": "Monday"}, outcomes, False, "Monday, commit 1")
    assert "- measured at another time: b (Tuesday, commit 2)" in text
    assert "another time: a" not in text


def test_a_cell_cannot_break_the_table():
    assert table([Row("a", "x | y\nz", None, "")])[2].count("|") == 7


def test_a_failed_step_tells_its_last_line(tmp_path):
    (tmp_path / "log").write_text("Traceback\n  File\nValueError: no such thing\n\n")
    assert last_line(tmp_path / "log") == "ValueError: no such thing"
