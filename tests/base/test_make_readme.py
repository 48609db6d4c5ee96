"""README's figures and pictures are made from what the commands wrote."""

import importlib.util
import re

import pytest
from readme_commands import ROOT
from run_maker import make_run

README = (ROOT / "README.md").read_text(encoding="utf-8")
PLACES = ["demo", "times", "scene", "homographies", "mapping"]


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("make_readme", ROOT / "docs" / "make_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_has_a_place_for_each_part(maker):
    assert re.findall(r"<!-- (\w+) -->", README) == PLACES
    filled = maker.fill(README, dict.fromkeys(PLACES, "new"))
    assert filled.count("-->\nnew\n<!-- end") == len(PLACES)
    assert maker.fill(filled, dict.fromkeys(PLACES, "new")) == filled
    with pytest.raises(SystemExit, match="0 places for other"):
        maker.fill(README, {"other": ""})


def test_a_run_gives_the_table_the_times_and_the_pictures(maker, tmp_path):
    run = make_run(tmp_path / "run")
    found = maker.parts(run.record, tmp_path / "no evaluations", tmp_path / "no maps")
    assert set(found) == {"demo", "times"}
    for step in run.record["steps"]:
        assert f"| {step['name']} | {step['seconds']:.0f} |" in found["times"]
    assert run.record["metrics"][0]["method"] in found["demo"]
    picture = maker.demo_picture(run.path)
    assert picture.shape[1] >= maker.WIDTH - 40
    assert picture.std() > 20


def test_the_table_of_maps_is_what_the_benchmark_wrote(maker, tmp_path):
    (tmp_path / "table.txt").write_text("scene  points\nours   12\n")
    found = maker.parts(make_run(tmp_path / "run").record, tmp_path / "no evaluations", tmp_path)
    assert found["mapping"] == "```text\nscene  points\nours   12\n```"
