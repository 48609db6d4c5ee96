"""Retrieval ranks by confident matches, in the paper's way or by a cascade, stores its counts and says what it left out."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_network import LOST, FakeNetwork, gray_images

from pdc_sfm.errors import FormatError, ImageError, OtherSettingsError, SettingsError
from pdc_sfm.images import read_image, write_image
from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.store.pair_lists import read_pairs, read_retrieval

DATABASE = {f"db/{value:03d}.png": value for value in range(100, 130, 2)}
QUERIES = {"query/a.png": 111, "query/b.png": 125}
EXHAUSTIVE = RetrievalSettings(method="direct", mode="exhaustive", min_side=48, readers=0)
CASCADE = replace(EXHAUSTIVE, mode="cascade", candidates=8, best=4)


@pytest.fixture
def images(tmp_path):
    gray_images(tmp_path / "images", DATABASE | QUERIES)
    return tmp_path / "images"


def run(images, settings, network=None, output="pairs.txt", top=4, **options):
    network, output = network or FakeNetwork(), images.parent / output
    return retrieve(images, list(QUERIES), list(DATABASE), output, top, settings, network=network, **options)


def nearest(query, count):
    """By brightness; of equals the first of the list."""
    return sorted(DATABASE, key=lambda name: abs(DATABASE[name] - QUERIES[query]))[:count]


@pytest.mark.parametrize("settings", [EXHAUSTIVE, CASCADE])
def test_the_images_with_most_confident_matches_come_first(images, settings):
    result = run(images, settings, top=5)
    listed = read_retrieval(result.pairs)
    assert listed == {query: nearest(query, 5) for query in QUERIES}
    assert result.unmatched == []


def test_exhaustive_counts_every_image_by_the_full_network_and_encodes_each_once(images):
    network = FakeNetwork()
    result = run(images, EXHAUSTIVE, network, top=3)
    assert (network.decoded, network.decoded_low) == (len(QUERIES) * len(DATABASE), 0)
    assert network.encoded == len(QUERIES) + len(DATABASE)
    # the query 111 is one step from 110 and from 112, and the finest level, 16x12 cells, loses LOST a step
    assert [found.matches for found in result.found["query/a.png"]][:2] == [16 * 12 - LOST] * 2


def test_the_cascade_shows_the_full_network_only_the_best(images):
    network = FakeNetwork()
    run(images, CASCADE, network, top=3)
    assert network.encoded_low == len(DATABASE) + len(QUERIES)
    assert network.decoded_low == len(QUERIES) * 8
    assert network.decoded == len(QUERIES) * 4


def test_the_best_are_ranked_by_the_full_network_and_the_others_follow(images):
    network = FakeNetwork()
    result = run(images, CASCADE, network, top=6)
    assert network.decoded == len(QUERIES) * 4
    assert [found.name for found in result.found["query/a.png"]] == nearest("query/a.png", 6)
    counts = [found.matches for found in result.found["query/a.png"]]
    assert counts == [*(16 * 12 - LOST * steps for steps in (1, 1, 3, 3)), None, None]


def test_without_the_full_network_the_coarse_branch_ranks(images):
    network = FakeNetwork()
    result = run(images, replace(CASCADE, best=0), network, top=6)
    assert (network.decoded, network.encoded) == (0, 0)
    assert read_retrieval(result.pairs) == {query: nearest(query, 6) for query in QUERIES}


def test_where_the_best_have_no_match_all_that_would_be_retrieved_are_seen(images):
    gray_images(images, {"query/a.png": 255})
    network = FakeNetwork()
    result = run(images, CASCADE, network, top=6)
    assert network.decoded == 6 + 4
    assert result.unmatched == ["query/a.png"]


def test_of_many_images_only_a_shortlist_is_compared_cell_by_cell(images):
    """Descriptors of plain gray tell dark from light only: half of the database is left."""
    network = FakeNetwork()
    result = run(images, replace(CASCADE, shortlist=8), network, top=2)
    assert network.decoded_low == len(QUERIES) * 8
    light = [found.name for found in result.found["query/b.png"]]
    assert all(DATABASE[name] >= 114 for name in light)


def test_a_cascade_wide_enough_is_exhaustive(images):
    wide = replace(CASCADE, candidates=99, best=99)
    found = [run(images, s, output=f"{s.mode}.txt").found for s in (EXHAUSTIVE, wide)]
    assert found[0] == found[1]


def test_another_top_counts_nothing_again_and_a_wider_cascade_only_what_is_new(images):
    run(images, CASCADE, top=2)
    again = FakeNetwork()
    assert len(read_pairs(run(images, CASCADE, again, top=4).pairs)) == 8
    assert (again.decoded, again.decoded_low) == (0, 0)
    wider = FakeNetwork()
    run(images, replace(CASCADE, best=6), wider, top=4)
    assert (wider.decoded, wider.decoded_low, wider.encoded_low) == (2 * len(QUERIES), 0, len(QUERIES))


def test_an_interrupted_run_goes_on_where_it_was(images):
    with pytest.raises(KeyboardInterrupt):
        run(images, EXHAUSTIVE, FakeNetwork(stop_after=12))
    rest = FakeNetwork()
    run(images, EXHAUSTIVE, rest)
    assert rest.decoded == len(QUERIES) * len(DATABASE) - 12


def test_nothing_is_lost_by_a_kill(images, tmp_path):
    code = f"""
import os, signal, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from test_retrieve import *

class Killed(FakeNetwork):
    def _count(self, pairs, low):
        super()._count(pairs, low)
        if self.decoded == 3:
            os.kill(os.getpid(), signal.SIGKILL)

run(Path({str(images)!r}), CASCADE, Killed(), top=4)
"""
    folder = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": folder}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "pairs.txt").exists()
    rest = FakeNetwork()
    result = run(images, CASCADE, rest, top=4)
    assert (rest.decoded, rest.decoded_low) == (len(QUERIES) * 4 - 2, 0)
    assert read_retrieval(result.pairs) == {query: nearest(query, 4) for query in QUERIES}


def test_database_codes_are_shared_between_outputs(images, tmp_path):
    run(images, CASCADE, output="one.txt", codes=tmp_path / "codes")
    network = FakeNetwork()
    run(images, CASCADE, network, output="two.txt", codes=tmp_path / "codes")
    assert network.encoded_low == len(QUERIES)
    gray_images(images, {"db/new.png": 90})
    network = FakeNetwork()
    more = [*DATABASE, "db/new.png"]
    retrieve(images, list(QUERIES), more, tmp_path / "three.txt", 4, CASCADE, network=network, codes=tmp_path / "codes")
    assert network.encoded_low == len(QUERIES) + 1


def test_images_of_other_sizes_share_the_low_branch(images):
    gray_images(images, {"db/110.png": 110}, size=(40, 90))
    result = run(images, CASCADE, top=2)
    assert {found.name for found in result.found["query/a.png"]} == {"db/110.png", "db/112.png"}


@pytest.mark.parametrize("settings", [EXHAUSTIVE, CASCADE])
def test_a_query_without_a_confident_match_is_silent_and_has_no_row(images, settings):
    gray_images(images, {"query/a.png": 255})
    result = run(images, settings)
    assert result.unmatched == ["query/a.png"]
    assert set(read_retrieval(result.pairs)) == {"query/b.png"}
    record = json.loads(result.pairs.with_suffix(".json").read_text())
    assert record["unmatched"] == ["query/a.png"]
    assert record["queries"]["query/b.png"][0] == ["db/124.png", 16 * 12 - LOST]


@pytest.mark.parametrize("settings", [EXHAUSTIVE, CASCADE])
def test_bad_images_are_named_and_cost_only_themselves(images, settings):
    (images / "db/110.png").write_bytes(b"")
    (images / "db/112.png").unlink()
    (images / "query/b.png").write_bytes(b"no image")
    result = run(images, settings, top=3)
    assert set(result.bad) == {"db/110.png", "db/112.png", "query/b.png"}
    assert set(read_retrieval(result.pairs)["query/a.png"]) == {"db/108.png", "db/114.png", "db/106.png"}


@pytest.mark.parametrize("settings", [EXHAUSTIVE, CASCADE])
def test_an_image_is_never_retrieved_for_itself(images, settings):
    names = list(DATABASE)
    result = retrieve(images, names, names, images.parent / "self.txt", 4, settings, network=FakeNetwork())
    assert all(query != image for query, image in read_pairs(result.pairs))
    assert {len(found) for found in result.found.values()} == {4}


def test_counts_of_other_settings_are_not_mixed(images):
    run(images, EXHAUSTIVE)
    with pytest.raises(SettingsError, match=r"select\.threshold: 0\.1 -> 0\.2"):
        run(images, replace(EXHAUSTIVE, threshold=0.2))


def test_codes_of_another_network_are_refused(images, tmp_path):
    from pdc_sfm.retrieval.codes import CodeFolder

    run(images, CASCADE, codes=tmp_path / "codes")
    with pytest.raises(SettingsError, match="choose another folder"):
        CodeFolder(tmp_path / "codes", {"weights": "abc"})
    part = next((tmp_path / "codes").glob("*.safetensors"))
    part.write_bytes(part.read_bytes()[:50])
    with pytest.raises(FormatError, match="delete it"):
        CodeFolder(tmp_path / "codes", {"network": "given"})


def test_lists_may_be_files_lists_with_intrinsics_globs_or_folders(images, tmp_path):
    from pdc_sfm.retrieval.image_lists import read_names

    (tmp_path / "day.txt").write_text("# day\nquery/a.png PINHOLE 64 48 50 50 32 24\n\nquery/a.png\n")
    (tmp_path / "night.txt").write_text("query/b.png\n")
    assert read_names(tmp_path / "day.txt", images) == ["query/a.png"]
    assert read_names(tmp_path / "*.txt", images) == ["query/a.png", "query/b.png"]
    assert read_names("db", images) == list(DATABASE)
    assert len(read_names(".", images)) == len(DATABASE) + len(QUERIES)
    with pytest.raises(FormatError, match="neither a list"):
        read_names("nowhere.txt", images)
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(FormatError, match="names no image"):
        read_names(tmp_path / "empty.txt", images)


def test_settings_out_of_range_are_named(tmp_path):
    for values, text in (
        ({"threshold": 1.0}, "threshold=1.0"),
        ({"best": -1}, "best=-1"),
        ({"min_side": 4}, "min_side=4"),
        ({"precision": "bfloat16", "device": "cpu"}, "precision=bfloat16 is for a GPU"),
    ):
        with pytest.raises(SettingsError, match=text):
            RetrievalSettings(**values)
    with pytest.raises(ImageError, match="not a folder"):
        retrieve(tmp_path / "none", ["a"], ["b"], tmp_path / "p.txt")


def test_matches_under_masks_do_not_count(images):
    """All of the best image is masked: it is not retrieved any more, and the counts are those of these masks."""
    best = nearest("query/a.png", 1)[0]
    for name in (*DATABASE, *QUERIES):
        shape = read_image(images / name).shape[:2]
        write_image(images.parent / "masks" / f"{name}.png", np.full(shape, 0 if name == best else 255, np.uint8))
    assert run(images, EXHAUSTIVE, output="plain.txt").found["query/a.png"][0].name == best
    result = run(images, EXHAUSTIVE, masks=images.parent / "masks")
    names = [found.name for found in result.found["query/a.png"]]
    assert names == [name for name in nearest("query/a.png", 5) if name != best][:4]
    assert result.unmasked is None
    with pytest.raises(OtherSettingsError, match="masks"):
        run(images, EXHAUSTIVE)


@pytest.mark.parametrize("settings", [EXHAUSTIVE, CASCADE, replace(CASCADE, best=0)])
def test_another_image_of_the_same_name_is_not_answered_with_the_counts_of_the_first(images, settings):
    run(images, settings)
    gray_images(images, {"query/a.png": 101})
    with pytest.raises(OtherSettingsError, match=r"other images of the same names .*query/a\.png"):
        run(images, settings)
    gray_images(images, QUERIES | {"db/104.png": 120})
    with pytest.raises(OtherSettingsError, match=r"other images of the same names .*db/104\.png"):
        run(images, settings)
    assert run(images, settings, output="new.txt").found
