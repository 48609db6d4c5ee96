"""The notebook runs from top to bottom, and is stored with its outputs."""

import importlib.util
import json

import numpy as np
import pytest
from readme_commands import ROOT

NOTEBOOK = ROOT / "docs" / "match_two_images.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("run_notebook", ROOT / "docs" / "run_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def executed(runner):
    return runner.run_notebook(NOTEBOOK)


def test_all_stages_are_shown(executed):
    notebook, names = executed
    fresh = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    pictures = sum("image/jpeg" in output.get("data", {}) for cell in fresh for output in cell["outputs"])
    assert pictures == 7
    assert [level.level for level in names["levels"]] == [4, 3, 2, 1]
    assert len(names["matches"]) > 1000


def test_finer_levels_are_more_right_and_confidence_tells_where(executed):
    _, names = executed
    medians = [np.nanmedian(error) for error in names["errors"]]
    assert medians[-1] < medians[0] / 2
    sure = names["confidence"] > 0.4
    assert names["right"][sure].mean() > 5 * names["right"][names["confidence"] < 0.1].mean()


def test_it_is_stored_small_with_its_outputs_in_order():
    assert NOTEBOOK.stat().st_size < 1.5e6
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    assert all(cell["outputs"] for cell in CELLS)


def test_a_cell_gives_what_it_prints_and_its_last_value(runner):
    names = {}
    printed, value = runner.run_cell("print('a')\nb = 2\nb + 1", names, "cell", 7)
    assert printed["text"] == ["a\n"]
    assert (value["data"]["text/plain"], value["execution_count"]) == (["3"], 7)
    with pytest.raises(ZeroDivisionError):
        runner.run_cell("1 / 0", names, "cell", 8)
