"""A folder of results appears whole or not at all."""

import pytest

from pdc_sfm.files import atomic_folder


def test_a_new_folder_appears_at_the_end(tmp_path):
    final = tmp_path / "deep" / "sfm"
    with atomic_folder(final, "done") as partial:
        (partial / "points.bin").write_text("x")
        (partial / "done").write_text("")
        assert not final.exists()
    assert sorted(p.name for p in final.iterdir()) == ["done", "points.bin"]
    assert [p.name for p in final.parent.iterdir()] == ["sfm"]


def test_an_error_leaves_the_old_content_and_no_trace(tmp_path):
    final = tmp_path / "sfm"
    final.mkdir()
    (final / "points.bin").write_text("old")

    def fail_halfway():
        with atomic_folder(final, "done") as partial:
            (partial / "points.bin").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert (final / "points.bin").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["sfm"]


def test_a_second_run_replaces_its_own_names_only(tmp_path):
    final = tmp_path / "sfm"
    for content in ("first", "second"):
        with atomic_folder(final, "done") as partial:
            (partial / "models").mkdir()
            (partial / "models" / content).write_text(content)
            (partial / "points.bin").write_text(content)
            (partial / "done").write_text(content)
        (final / "notes.txt").write_text("mine")
    assert (final / "points.bin").read_text() == (final / "done").read_text() == "second"
    assert [p.name for p in (final / "models").iterdir()] == ["second"]
    assert (final / "notes.txt").read_text() == "mine"


def test_what_a_killed_run_left_is_swept_away(tmp_path):
    stale = tmp_path / ".sfm.partial"
    stale.mkdir()
    (stale / "rubbish").write_text("")
    with atomic_folder(tmp_path / "sfm", "done") as partial:
        assert list(partial.iterdir()) == []
    assert not stale.exists()
