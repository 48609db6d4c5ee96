"""What docs/files.md says of h5 files and of the journal is how they are: read here without our readers."""

import json
import re
import struct
import zlib

import h5py
import numpy as np
import pytest
from photo_fakes import waves
from readme_commands import ROOT
from shift_matcher import MovedMatcher

from pdc_sfm.engine.run import match_pairs
from pdc_sfm.images import write_image

PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
PAIR = ("db/a.png", "b.png")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    for seed, name in enumerate(PAIR):
        write_image(folder / "images" / name, waves(seed, (48, 64)))
    return match_pairs(folder / "images", [PAIR], folder / "out", matcher=MovedMatcher((2.0, 1.0)))


def table(title: str) -> dict[str, str]:
    """Names of the first column of a section's table, and the types beside them."""
    section = PAGE.partition(f"## {title}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \|", section, re.M)
    return {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}


def test_a_feature_file_has_the_datasets_of_the_page(run):
    listed = table("Feature file")
    with h5py.File(run.features) as file:
        group = file[PAIR[0]]
        assert set(group) == set(listed) - {"descriptors"}
        for name, item in group.items():
            assert listed[name].startswith(item.dtype.name)
        assert group["image_size"][()].tolist() == [64, 48]
        assert group.attrs["pdc_sfm_run"] in json.loads(file.attrs["pdc_sfm"])["runs"]


def test_a_match_file_has_the_datasets_of_the_page(run):
    listed = table("Match file")
    with h5py.File(run.matches) as file:
        group = file["db-a.png/b.png"]
        assert set(group) == set(listed)
        for name, item in group.items():
            assert listed[name] == item.dtype.name
        record = json.loads(file.attrs["pdc_sfm"])
    assert set(record) == {"settings", "run", "fixed", "missing"}


def test_a_record_of_the_journal_is_as_the_page_says(run):
    assert sorted(path.name for path in run.raw.iterdir()) == ["00000.matches", "images.json", "settings.json"]
    data = (run.raw / "00000.matches").read_bytes()
    magic, names, count, *sizes, packed, checksum = struct.unpack("<4s8I", data[:36])
    body = data[36:]
    assert (magic, sizes, names % 4, packed) == (b"PDM3", [64, 48, 64, 48], 0, len(body) - names)
    assert zlib.crc32(data[:32] + body) == checksum
    assert body[:names].rstrip(b"\0").decode().split("\0") == list(PAIR)
    content = np.frombuffer(zlib.decompress(body[names:]), np.uint8)
    planes = content[: 16 * count].reshape(4, 4, count).astype(np.int64)
    unsigned = sum(planes[:, byte] << (8 * byte) for byte in range(4))  # (4, N)
    places = np.cumsum(np.where(unsigned % 2, -(unsigned + 1) // 2, unsigned // 2), axis=1) / 64
    scores = (content[16 * count :].reshape(2, count) * [[1], [256]]).sum(0) / 4095
    assert len(scores) == count > 0
    assert scores.max() <= 1
    np.testing.assert_allclose(np.abs(places[2:] - places[:2]), np.tile([[2.0], [1.0]], (1, count)), atol=1 / 64)
