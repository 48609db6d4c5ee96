"""What docs/files.md says of the files of models and results is what is written."""

import json
import re

from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs, write_queries
from readme_commands import ROOT

from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate

PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
NAMES = [f"{i}.png" for i in range(4)]


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}")[2].partition("\n## ")[0]


def test_models_and_logs_have_the_names_of_the_page(tmp_path):
    scene = make_scene(NAMES)
    images = write_images(scene, tmp_path / "images")
    features = write_features(scene, tmp_path / "features.h5")
    matches = write_matches(scene, tmp_path / "matches.h5", scene.pairs())
    known, pairs = (
        write_model(scene, tmp_path / "known", NAMES[1:]),
        write_pairs(tmp_path / "p.txt", scene.pairs(NAMES[1:])),
    )
    settings = TriangulationSettings(refine_keypoints=False)
    triangulate(known, images, pairs, features, matches, tmp_path / "sfm", settings)
    named = set(re.findall(r"`(\w+\.(?:bin|ply|db|json))`", section("Models")))
    assert {path.name for path in (tmp_path / "sfm").iterdir()} == named
    summary = json.loads((tmp_path / "sfm" / "summary.json").read_text())
    assert {"model", "settings", "left_out", "verdict", "versions"} <= summary.keys()
    assert all(f"`{key}`" in section("Models") for key in summary if key != "refined_keypoints")

    (tmp_path / "out").mkdir()
    retrieval = write_pairs(tmp_path / "retrieval.txt", [(NAMES[0], name) for name in NAMES[1:]])
    queries = write_queries(scene, tmp_path / "queries.txt", NAMES[:1])
    localize(tmp_path / "sfm", queries, retrieval, features, matches, tmp_path / "out" / "results.txt")
    named = set(re.findall(r"`(results\.txt\w*(?:\.\w+)?)`", section("Query lists, results, logs")))
    assert {path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."} == named
