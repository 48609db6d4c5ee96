"""What is installed, and what public tests try, follow from setup.cfg."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import yaml

import pdc_sfm

ROOT = Path(__file__).resolve().parents[2]


def requirements(extra: str | None = None) -> dict[str, str]:
    """Name -> lowest version."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    text = config["options.extras_require"][extra] if extra else config["options"]["install_requires"]
    return dict(re.match(r"([\w.-]+)>=([\w.]+)", line).groups() for line in text.split("\n") if line)


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def same_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_oldest_dependencies_are_the_lowest_that_setup_cfg_allows():
    lowest, oldest = requirements(), pins("constraints-oldest.txt")
    assert set(lowest) == set(oldest)
    for name, version in lowest.items():
        assert f"{oldest[name]}.".startswith(f"{version}."), name


def test_every_requirement_is_pinned_for_make_setup():
    pinned = {same_name(name) for name in pins("constraints.txt")}
    missing = {name for name in {**requirements(), **requirements("dev")} if same_name(name) not in pinned}
    assert not missing


def test_public_tests_try_every_python_that_setup_cfg_allows():
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"][0] == "3.10"
    assert "python_requires = >=3.10\n" in (ROOT / "setup.cfg").read_text()
    assert {"python": "3.10", "dependencies": "oldest"} in matrix["include"]


def test_the_package_says_that_it_has_types():
    assert (ROOT / "pdc_sfm/py.typed").is_file()
    assert "py.typed" in (ROOT / "setup.cfg").read_text()


def test_the_changelog_has_the_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[:2] == ["Unreleased", pdc_sfm.__version__] or versions[0] == pdc_sfm.__version__
    assert "version = attr: pdc_sfm.__version__\n" in (ROOT / "setup.cfg").read_text()


def test_pages_name_files_that_are_there():
    for page in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / page).read_text()
        linked = re.findall(r"\]\(([^)#:]+)\)", text)
        named = [name for name in re.findall(r"`((?:pdc_sfm|tests|docs|benchmarks|datasets|\.ci)/[\w./]+)`", text)]
        missing = [name for name in [*linked, *named] if not (ROOT / name).exists() and name != "datasets/benchmarks"]
        assert not missing, page
