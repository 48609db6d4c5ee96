"""The import rules of setup.cfg hold for every package: one that is new must be named in them."""

import configparser
from pathlib import Path

import pytest

import pdc_sfm

ROOT = Path(pdc_sfm.__file__).parent
TOP = {f"pdc_sfm.{p.stem}" for p in ROOT.iterdir() if p.suffix == ".py" and p.stem != "__init__"}
TOP |= {f"pdc_sfm.{p.parent.name}" for p in ROOT.glob("*/__init__.py")}


@pytest.mark.parametrize(
    ("contract", "knowing"), [("h5", {"pdc_sfm.store", "pdc_sfm.tracks"}), ("pycolmap", {"pdc_sfm.colmap"})]
)
def test_all_other_packages_are_kept_from_it(contract, knowing):
    config = configparser.ConfigParser()
    config.read(ROOT.parent / "setup.cfg")
    named = set(config[f"importlinter:contract:{contract}"]["source_modules"].split())
    assert named == TOP - knowing
