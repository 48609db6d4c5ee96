"""docs/architecture.md: every room and file it names is there, and the two walks are those of the commands."""

import re
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
from call_order import ROOT, call_order

from pdc_sfm.cli import main
from pdc_sfm.images import write_image

DOCS = ROOT.parent / "docs"
TEXT = (DOCS / "architecture.md").read_text(encoding="utf-8")


def walk(verb: str) -> list[str]:
    part = TEXT.split(f"### {verb}\n")[1].split("\n#")[0]
    return re.findall(r"^- `([^`]+)`", part, re.MULTILINE)


def rooms() -> list[str]:
    return re.findall(r"^\| `([a-z_]+)/` \|", TEXT, re.MULTILINE)


def test_every_room_has_its_line():
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    assert sorted(rooms()) == packages


def test_every_file_of_the_walks_exists():
    for verb in ("match", "reconstruct"):
        assert len(walk(verb)) > 10
        assert [path for path in walk(verb) if not (ROOT / path).is_file()] == []


def test_the_picture_names_every_room():
    picture = ElementTree.parse(DOCS / "architecture.svg").getroot()
    assert picture.tag.endswith("svg")
    words = {word for node in picture.iter() if node.tag.endswith("text") for word in re.findall(r"[a-z]+", node.text)}
    assert set(rooms()) <= words


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Three views of one wall, moved sideways, and the list of their pairs."""
    folder, rng = tmp_path_factory.mktemp("walk"), np.random.default_rng(0)
    wall = sum(cv2.resize(rng.normal(0, 1, (n, n, 3)), (400, 400), interpolation=cv2.INTER_CUBIC) for n in (8, 25, 80))
    wall = np.clip(127 + 40 * wall, 0, 255).astype(np.uint8)
    for i in range(3):
        write_image(folder / "photos" / f"{i}.png", wall[10 * i : 10 * i + 256, 14 * i : 14 * i + 320])
    (folder / "pairs.txt").write_text("0.png 1.png\n1.png 2.png\n0.png 2.png\n")
    return folder


def test_the_walks_are_those_of_the_commands(photos):
    out, both = photos / "out", ["--pairs", f"{photos}/pairs.txt", "--images", f"{photos}/photos"]
    files = ["--features", str(out / "f.h5"), "--matches", str(out / "m.h5")]
    codes = []
    called = call_order(
        lambda: codes.append(main(["match", *both, *files, "--output", str(out), "--quiet", "dense.min_side=256"]))
    )
    assert [path for path in called if path in walk("match")] == walk("match")
    called = call_order(lambda: codes.append(main(["reconstruct", *both, *files, "--output", str(photos / "sfm")])))
    assert [path for path in called if path in walk("reconstruct")] == walk("reconstruct")
    assert codes == [0, 0]
