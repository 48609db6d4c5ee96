"""The demo on a scene whose matches are exact: every step once, a table, and nothing repeated when it is run again."""

import json

import pytest
from fake_network import FakeNetwork
from projected_town import BLIND, ExactMatcher, projected_scene

from pdc_sfm.demo import demo_settings, format_table, run_scene
from pdc_sfm.demo import scene as scene_module
from pdc_sfm.errors import SettingsError
from pdc_sfm.run_folder import RunFolder
from pdc_sfm.store.pair_lists import read_retrieval

SETTINGS = ("neighbors=5", "retrieved=3", "report=false", "retrieve.min_side=64", "triangulation.threads=1")


@pytest.fixture
def scene(monkeypatch):
    return projected_scene(scene_module, monkeypatch)


def run(folder, scene, *words, match=None):
    match = match or ExactMatcher(scene)
    settings = demo_settings(None, [*SETTINGS, *words])
    run_scene(folder, settings, match=match, network=FakeNetwork(), workers=1)
    return match


def test_all_steps_run_once_and_the_truth_is_found(scene, tmp_path, said):
    matcher = run(tmp_path, scene, "sift=false")
    assert matcher.calls == ["pairs.txt", "retrieval.txt"]
    record = RunFolder(tmp_path).record
    assert record["finished"]
    steps = ["scene", "pairs", "match", "triangulate", "retrieve", "match queries", "localize"]
    assert [step["name"] for step in record["steps"]] == steps
    assert [line.split("  ")[0] for line in said()[: len(steps)]] == steps
    (row,) = record["metrics"]
    assert (row["registered"], row["images"]) == (6, 6)
    assert row["reprojection_error"] < 0.01
    assert row["queries"]["day"] == {"count": 2, "localized": 2, "recall": [1.0, 1.0, 1.0]}
    assert row["queries"]["night"] == {"count": 2, "localized": 1, "recall": [0.5, 0.5, 0.5]}
    assert {len(images) for images in read_retrieval(tmp_path / "retrieval.txt").values()} == {3}


def test_the_record_of_each_query_says_how_far_it_is_or_why_it_is_missing(scene, tmp_path):
    run(tmp_path, scene, "sift=false")
    record = json.loads((tmp_path / "localization.json").read_text())
    assert record["thresholds"] == [[0.25, 2.0], [0.5, 5.0], [5.0, 10.0]]
    good, blind = record["queries"]["day/0001.png"], record["queries"][BLIND]
    assert good["group"] == "day"
    assert good["localized"]
    assert good["metres"] < 1e-3
    assert good["degrees"] < 1e-2
    assert good["inliers"] > 50
    assert not blind["localized"]
    assert blind["metres"] is None
    assert "0 correspondences" in blind["reason"]


def test_a_second_run_repeats_nothing_and_other_settings_only_what_depends_on_them(scene, tmp_path, said):
    run(tmp_path, scene, "sift=false")
    first = RunFolder(tmp_path).record["steps"]
    said()
    assert run(tmp_path, scene, "sift=false").calls == []
    assert sum(line.endswith("done before") for line in said()) == 7
    assert RunFolder(tmp_path).record["steps"] == first
    assert run(tmp_path, scene, "sift=false", "retrieved=2").calls == ["retrieval.txt"]


def test_results_of_other_settings_are_made_anew_even_where_they_could_not_be_mixed(scene, tmp_path, said):
    run(tmp_path, scene, "sift=false")
    said()
    assert run(tmp_path, scene, "sift=false", "retrieve.threshold=0.2").calls == ["retrieval.txt"]
    assert sum(line.endswith("done before") for line in said()) == 4
    with pytest.raises(SettingsError, match="threshold=2"):
        run(tmp_path, scene, "sift=false", "retrieve.threshold=2")


def test_an_interrupted_run_goes_on(scene, tmp_path):
    class Interrupted(ExactMatcher):
        def __call__(self, images, pairs, features, matches, fixed=None):
            if fixed is not None:
                raise KeyboardInterrupt
            super().__call__(images, pairs, features, matches)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, scene, "sift=false", match=Interrupted(scene))
    assert not RunFolder(tmp_path).record["finished"]
    assert run(tmp_path, scene, "sift=false").calls == ["retrieval.txt"]


def test_where_sift_finds_nothing_its_row_says_so_and_the_run_ends_well(scene, tmp_path, said):
    run(tmp_path, scene)
    ours, sift = RunFolder(tmp_path).record["metrics"]
    assert (sift["method"], sift["points"]) == ("SIFT", 0)
    assert ours["points"] > 100
    assert json.loads((tmp_path / "sift.json").read_text())["row"] == sift
    assert any(line.startswith("SIFT has no model") for line in said())


def test_the_report_is_the_last_step(scene, tmp_path, monkeypatch, said):
    import pdc_sfm.report

    seen = []
    monkeypatch.setattr(
        pdc_sfm.report, "write_report", lambda folder: seen.append(RunFolder(folder).record) or folder / "report.html"
    )
    run(tmp_path, scene, "sift=false", "report=true")
    assert seen[0]["finished"]
    assert len(seen[0]["metrics"]) == 1
    assert [line.split()[0] for line in said()[-2:]] == ["report", "total"]


def test_a_table_has_a_row_for_each_method_and_recall_in_per_cent():
    day = {"count": 4, "localized": 4, "recall": [0.5, 0.75, 1.0]}
    figures = {"images": 24, "registered": 24, "points": 12345, "track_length": 5.25, "reprojection_error": 0.5}
    rows = [
        {"method": "pdc_sfm", **figures, "queries": {"day": day}},
        {"method": "SIFT", **figures, "queries": {}},
    ]
    groups, heading, ours, sift = format_table(rows).splitlines()
    assert groups.strip() == "day queries (4)"
    assert "0.25m 2°" in heading
    assert "12,345" in ours
    assert ours.split()[-6:] == ["50.0", "%", "75.0", "%", "100.0", "%"]
    assert sift.split()[-6:] == ["0.0", "%"] * 3
    assert len({len(groups), len(heading), len(ours), len(sift)}) == 1
