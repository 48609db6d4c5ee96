"""The tables of a run."""

import math

from pdc_sfm.training.curve import Table, read_table


def test_a_table_reopened_at_an_iteration_forgets_what_came_after(tmp_path):
    table = Table(tmp_path / "t.csv")
    table.add({"iteration": 1, "loss": 3.0})
    table.add({"iteration": 2, "loss": 2.0, "new": 7.0})
    table.add({"iteration": 3, "loss": 1.0, "new": 8.0})
    again = Table(tmp_path / "t.csv", iteration=2)
    again.add({"iteration": 3, "loss": 0.5, "new": 9.0})
    rows = read_table(tmp_path / "t.csv")
    assert [(row["iteration"], row["loss"]) for row in rows] == [(1, 3.0), (2, 2.0), (3, 0.5)]
    assert math.isnan(rows[0]["new"])
    assert rows[2]["new"] == 9.0


def test_a_line_cut_short_by_a_crash_is_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("iteration,loss\n1,3.0\n2,2.0\n3")
    assert [row["iteration"] for row in read_table(tmp_path / "t.csv")] == [1, 2]
