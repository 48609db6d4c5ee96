"""`pdc-sfm localize` as a user runs it."""

import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs, write_queries

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.mapping.triangulation import triangulate

MAP = [f"{i}.png" for i in range(4)]
QUERIES = ["a.png", "b.png"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    scene = make_scene([*MAP[:2], *QUERIES, *MAP[2:]])
    pairs = scene.pairs(MAP)
    rows = [(query, name) for query in QUERIES for name in MAP]
    features, matches = write_features(scene, folder / "f.h5"), write_matches(scene, folder / "m.h5", pairs + rows)
    known, images = write_model(scene, folder / "known", MAP), write_images(scene, folder / "images", MAP)
    triangulate(known, images, write_pairs(folder / "p.txt", pairs), features, matches, folder / "sfm")
    write_pairs(folder / "r.txt", rows)
    write_queries(scene, folder / "q.txt", QUERIES)
    return folder


def words(folder, output, **other):
    files = dict(model="sfm", queries="q.txt", retrieval="r.txt", features="f.h5", matches="m.h5") | other
    return ["localize", "--output", str(output), *(w for k, v in files.items() for w in (f"--{k}", str(folder / v)))]


def test_results_and_summary(folder, tmp_path, capsys):
    assert main([*words(folder, tmp_path / "out.txt"), "pose.ransac_threshold=8"]) == 0
    assert f"2 of 2 queries localized -> {tmp_path / 'out.txt'}" in capsys.readouterr().out
    assert set(read_poses(tmp_path / "out.txt")) == set(QUERIES)


def test_a_query_without_retrieval_is_named(folder, tmp_path, capsys):
    (tmp_path / "r.txt").write_text("".join(line for line in (folder / "r.txt").open() if line.startswith("a.png")))
    assert main(words(folder, tmp_path / "out.txt", retrieval=tmp_path / "r.txt")) == 0
    output = capsys.readouterr().out
    assert "not localized: b.png: no row in the retrieval list" in output
    assert "1 of 2 queries localized" in output


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"model": "images"}, "holds no COLMAP model"),
        ({"queries": "r.txt"}, "r.txt line 1: a.png has no intrinsics"),
        ({"features": "none.h5"}, "there is no feature file"),
        ({"matches": "q.txt"}, "is not a readable match file"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(folder, tmp_path, capsys, other, message):
    assert main(words(folder, tmp_path / "out.txt", **other)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("pdc-sfm: ")
    assert message in lines[-1]
    assert not (tmp_path / "out.txt").exists()
