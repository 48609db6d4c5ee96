"""Every file and name that docs/method.md points to exists."""

import re
from pathlib import Path

import pytest

from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings
from pdc_sfm.settings import to_dict

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`((?:pdc_sfm/)?[a-z_]+/(?:[a-z_]+\.py)?)`", PAGE)))
NAMED = re.findall(r"`([a-z_]+/[a-z_]+\.py)`: ((?:`\w+`(?:, )?)+)", PAGE)


def test_the_page_points_to_many_places():
    assert len(FILES) > 15
    assert len(NAMED) > 8


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_there(name):
    assert (ROOT / "pdc_sfm" / name.removeprefix("pdc_sfm/")).exists()


@pytest.mark.parametrize(("file", "names"), NAMED)
def test_the_name_is_defined_there(file, names):
    source = (ROOT / "pdc_sfm" / file).read_text(encoding="utf-8")
    for name in re.findall(r"`(\w+)`", names):
        assert re.search(rf"^(def|class) {name}\b", source, re.M), f"{name} in {file}"


def test_the_values_of_mapping_that_it_names_are_the_defaults():
    named = re.findall(r"`(min_support_ratio)=([\d.]+)`", PAGE)
    ratio = to_dict(ReconstructionSettings())["min_support_ratio"]
    assert [(key, float(value)) for key, value in named] == [("min_support_ratio", ratio)]
