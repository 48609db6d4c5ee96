"""One descriptor an image finds its place in a large database; descriptors and index are made once and added to."""

import numpy as np
import pytest
import torch

from pdc_sfm.network import ImageCode
from pdc_sfm.retrieval import index as index_module
from pdc_sfm.retrieval import scan as scan_module
from pdc_sfm.retrieval.codes import PART, CoarseCodes, CodeFolder
from pdc_sfm.retrieval.index import DescriptorIndex
from pdc_sfm.retrieval.scan import DescriptorScan

PLACES, VISITS, CHANNELS = 40, 8, 24


def codes_of(names, seed=0, noise=0.3):
    """Images `place_visit`: cells of a place are the same in all, in another order (the camera moved) and with noise."""
    maps = []
    for name in names:
        place, visit = map(int, name.split("_"))
        cells = np.random.default_rng([seed, place]).normal(size=(CHANNELS, 256))
        random = np.random.default_rng([seed, place, visit + 1])
        cells = np.roll(cells, int(random.integers(256)), axis=1) + random.normal(0, noise, cells.shape)
        maps.append(cells.reshape(CHANNELS, 16, 16))
    features = {4: torch.from_numpy(np.stack(maps)).half(), 3: torch.zeros(len(names), 1, 32, 32).half()}
    return CoarseCodes(list(names), [(640, 480)] * len(names), ImageCode(features, {}, (256, 256), (256, 256)))


NAMES = [f"{place}_{visit}" for visit in range(VISITS) for place in range(PLACES)]
QUERIES = codes_of([f"{place}_{99}" for place in range(0, PLACES, 3)])


@pytest.fixture
def folder(tmp_path):
    """Three parts, the last of them not full."""
    made = CodeFolder(tmp_path, {"network": "synthetic"})
    for start in range(0, len(NAMES), PART):
        made.add(codes_of(NAMES[start : start + PART]))
    return made


def places_of(shortlists):
    return [[int(name.split("_")[0]) for name in names] for names in shortlists]


def opened(folder):
    """As another run finds it."""
    index = DescriptorIndex(CodeFolder(folder.folder, folder.made_by))
    index.update()
    return index


def test_all_visits_to_a_place_come_first(folder):
    found = places_of(opened(folder).shortlist(QUERIES, NAMES, VISITS))
    assert found == [[place] * VISITS for place in range(0, PLACES, 3)]


def test_a_resident_index_reads_no_file_twice(folder):
    opened(folder)
    index = DescriptorIndex(folder, resident=True)
    index.update()
    before = index.shortlist(QUERIES, NAMES, VISITS)
    for path in folder.folder.glob("descriptors_*"):
        path.unlink()
    assert index.shortlist(QUERIES, NAMES, VISITS) == before
    assert not list(folder.folder.glob("descriptors_*"))  # nor were they made again


@pytest.mark.parametrize("rows", [[5], [7, 2, 100], list(range(100))])  # few are read one by one
def test_the_codes_of_some_images_are_theirs(folder, rows):
    some, whole = folder.read(1, rows), folder.read(1, list(range(PART))).some(rows)
    assert (some.names, some.sizes) == (whole.names, whole.sizes)
    assert all(torch.equal(some.code.features[level], whole.code.features[level]) for level in (3, 4))


def test_a_descriptor_takes_two_kilobytes(folder):
    opened(folder)
    size = (folder.folder / "descriptors_00000.safetensors").stat().st_size
    assert size <= PART * 2048 + 4096  # names and what made them


def test_only_images_of_the_database_are_found(folder):
    some = [name for name in NAMES if name.endswith(("_2", "_5"))]
    found = opened(folder).shortlist(QUERIES, some, 2)
    assert [sorted(names) for names in found] == [[f"{place}_2", f"{place}_5"] for place in range(0, PLACES, 3)]


def test_what_was_described_is_kept_and_only_new_images_are_described(folder, monkeypatch):
    described = []
    describe = DescriptorIndex._describe
    monkeypatch.setattr(DescriptorIndex, "_describe", lambda self, part: (described.append(part), describe(self, part)))
    opened(folder)
    assert described == [0, 1, 2]
    again = opened(folder)
    folder.add(codes_of([f"{place}_50" for place in range(PLACES)]))
    more = opened(folder)
    assert described == [0, 1, 2, 3]
    assert more.vocabulary.digest() == again.vocabulary.digest()
    found = more.shortlist(QUERIES, [*NAMES, *(f"{place}_50" for place in range(PLACES))], VISITS + 1)
    assert all(f"{place}_50" in names for place, names in zip(range(0, PLACES, 3), found))


@pytest.mark.parametrize(
    "file",
    [
        "descriptors_00001.safetensors",
        "vocabulary.safetensors",
        "index.faiss",
        "index.descriptors",
        "index.json",
    ],
)
def test_damaged_files_are_made_again(folder, monkeypatch, file):
    if "index" in file:
        pytest.importorskip("faiss")
        monkeypatch.setattr(index_module, "EXACT", 100)
    before = opened(folder).shortlist(QUERIES, NAMES, VISITS)
    path = folder.folder / file
    path.write_bytes(path.read_bytes()[:40])
    assert opened(folder).shortlist(QUERIES, NAMES, VISITS) == before


@pytest.fixture
def many(folder, monkeypatch):
    """More images than are compared one by one; of 320 only 24 are compared whole for a query."""
    pytest.importorskip("faiss")
    monkeypatch.setattr(index_module, "EXACT", 100)
    monkeypatch.setattr(scan_module, "REFINED", 3 * VISITS)
    return folder


def test_short_codes_find_what_comparing_all_finds(folder, many, monkeypatch):
    found = opened(many).shortlist(QUERIES, NAMES, VISITS)
    monkeypatch.setattr(index_module, "EXACT", 1000)
    assert found == opened(folder).shortlist(QUERIES, NAMES, VISITS)


def test_short_codes_count_only_images_of_the_database(many):
    some = [name for name in NAMES if name.endswith(("_1", "_3", "_6", "_7"))]
    found = opened(many).shortlist(QUERIES, some, 4)
    wanted = [sorted(f"{place}_{visit}" for visit in (1, 3, 6, 7)) for place in range(0, PLACES, 3)]
    assert [sorted(names) for names in found] == wanted


def test_short_codes_are_added_to_and_not_learned_again(many, monkeypatch):
    opened(many)
    monkeypatch.setattr(DescriptorScan, "train", None)
    more = [f"{place}_50" for place in range(PLACES)]
    many.add(codes_of(more))
    found = opened(many).shortlist(QUERIES, [*NAMES, *more], VISITS + 1)
    assert all(f"{place}_50" in names for place, names in zip(range(0, PLACES, 3), found))
    assert opened(many).shortlist(QUERIES, [*NAMES, *more], VISITS + 1) == found  # as it was written


def test_what_a_killed_run_added_does_not_count(many):
    before = opened(many).shortlist(QUERIES, NAMES, VISITS)
    with open(many.folder / "index.descriptors", "ab") as file:
        file.write(bytes(5000))
    more = [f"{place}_50" for place in range(PLACES)]
    many.add(codes_of(more))
    found = opened(many).shortlist(QUERIES, [*NAMES, *more], VISITS + 1)
    assert [[name for name in names if name not in more][:VISITS] for names in found] == before


def test_who_searches_goes_on_while_the_files_are_made_again(tmp_path):
    pytest.importorskip("faiss")
    old, new = (np.random.default_rng(seed).normal(size=(300, 64)).astype(np.float32) for seed in (1, 2))
    scan = DescriptorScan.write(tmp_path, DescriptorScan.train(old), [old])
    DescriptorScan.write(tmp_path, DescriptorScan.train(new), [new])
    assert [rows[0] for rows in scan.search(old[:20], 5)] == [*range(20)]  # each is most like itself


def test_without_faiss_all_are_compared_and_that_is_said(folder, monkeypatch, caplog):
    monkeypatch.setattr(index_module, "EXACT", 100)
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    found = places_of(opened(folder).shortlist(QUERIES, NAMES, VISITS))
    assert found == [[place] * VISITS for place in range(0, PLACES, 3)]
    assert "pip install pdc_sfm[retrieval]" in caplog.text
