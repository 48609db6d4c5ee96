"""All steps of an hloc script in one import, with hloc's signatures; beside the real hloc where it is installed."""

import inspect
import re

import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs, write_queries
from readme_commands import ROOT

from pdc_sfm import hloc_plugin
from pdc_sfm.hloc_plugin import localize_sfm, match_dense, reconstruction, triangulation

STEPS = {
    "match_dense": "conf pairs image_dir export_dir matches features features_ref max_kps overwrite",
    "triangulation": "sfm_dir reference_model image_dir pairs features matches skip_geometric_verification "
    "estimate_two_view_geometries min_match_score verbose mapper_options",
    "reconstruction": "sfm_dir image_dir pairs features matches camera_mode verbose skip_geometric_verification "
    "min_match_score image_list image_options mapper_options",
    "localize_sfm": "reference_sfm queries retrieval features matches results ransac_thresh covisibility_clustering "
    "prepend_camera_name config",
}
NAMES = [f"db/{i}.png" for i in range(5)]
QUERY = NAMES[0]


@pytest.fixture
def scene():
    return make_scene(NAMES, model="PINHOLE", params=(500, 500, 320, 240), vary=0)


@pytest.fixture
def files(scene, tmp_path):
    return dict(
        image_dir=write_images(scene, tmp_path / "images"),
        pairs=write_pairs(tmp_path / "pairs.txt", scene.pairs(NAMES[1:])),
        features=write_features(scene, tmp_path / "features.h5"),
        matches=write_matches(scene, tmp_path / "matches.h5", scene.pairs()),
    )


def signature(step) -> list[tuple]:
    return [(p.name, p.default) for p in inspect.signature(step.main).parameters.values()]


def test_the_old_import_gives_the_same_module():
    assert match_dense is hloc_plugin
    assert {"main", "confs"} <= set(dir(match_dense))


@pytest.mark.parametrize("name", STEPS)
def test_arguments_have_hlocs_names_and_order(name):
    assert [argument for argument, _ in signature(getattr(hloc_plugin, name))] == STEPS[name].split()


def test_the_page_and_the_readme_show_this_import():
    for page in ("README.md", "docs/hloc.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        (names,) = re.findall(r"from pdc_sfm\.hloc_plugin import ([\w, ]+)", text)
        assert set(names.split(", ")) == set(STEPS)


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "Path"])
def test_a_script_runs_with_paths_of_either_kind(scene, files, tmp_path, kind):
    given = {key: kind(value) for key, value in files.items()}
    known = write_model(scene, tmp_path / "known", NAMES[1:])
    model = triangulation.main(kind(tmp_path / "sfm"), kind(known), **given)
    assert model.num_points3D() > 200
    mode = "SINGLE" if kind is str else pycolmap.CameraMode.SINGLE
    model = reconstruction.main(kind(tmp_path / "free"), **given, camera_mode=mode)
    assert model.num_reg_images() == 4
    assert len(model.cameras) == 1
    queries = write_queries(scene, tmp_path / "queries.txt", [QUERY])
    retrieval = write_pairs(tmp_path / "retrieval.txt", [(QUERY, name) for name in NAMES[1:]])
    rest = [kind(path) for path in (queries, retrieval, files["features"], files["matches"], tmp_path / "results.txt")]
    result = localize_sfm.main(kind(tmp_path / "sfm"), *rest, config={"estimation": {"ransac": {"max_error": 6}}})
    np.testing.assert_allclose(result.poses[QUERY].matrix(), scene.poses[QUERY], atol=1e-3)


@pytest.mark.parametrize("name", STEPS)
def test_signatures_are_those_of_the_installed_hloc(name):
    pytest.importorskip("hloc", reason="hloc is an optional companion and not on PyPI")
    try:
        theirs = __import__(f"hloc.{name}", fromlist=[""])
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"hloc.{name} cannot be imported: {error}")
    assert signature(getattr(hloc_plugin, name)) == signature(theirs)


def test_hlocs_own_triangulation_finds_no_point_and_its_localization_counts_the_query(scene, files, tmp_path, caplog):
    """What docs/hloc.md says of hloc. If this fails, hloc or pycolmap was mended, and the page wants an edit."""
    pytest.importorskip("hloc", reason="hloc is an optional companion and not on PyPI")
    from hloc import localize_sfm as their_localize_sfm
    from hloc import triangulation as their_triangulation

    known = write_model(scene, tmp_path / "known", NAMES[1:])
    assert triangulation.main(tmp_path / "ours", known, **files).num_points3D() > 200
    assert their_triangulation.main(tmp_path / "theirs", known, **files).num_points3D() == 0
    estimated = their_triangulation.main(tmp_path / "estimated", known, **files, estimate_two_view_geometries=True)
    assert estimated.num_points3D() > 200
    queries = write_queries(scene, tmp_path / "queries.txt", [QUERY])
    retrieval = write_pairs(tmp_path / "retrieval.txt", [(QUERY, name) for name in NAMES[1:]])
    rest = (queries, retrieval, files["features"], files["matches"])
    their_localize_sfm.main(tmp_path / "theirs", *rest, tmp_path / "results.txt")
    first = pycolmap.Reconstruction(known).find_image_with_name(NAMES[1]).cam_from_world()
    pose = np.array((tmp_path / "results.txt").read_text().split()[5:8], float)
    np.testing.assert_allclose(pose, first.translation, atol=1e-6)  # "Localized 1 / 1 images"
    their_localize_sfm.main(tmp_path / "ours", *rest, tmp_path / "right.txt")  # hloc reads our model
    pose = np.array((tmp_path / "right.txt").read_text().split()[5:8], float)
    np.testing.assert_allclose(pose, scene.poses[QUERY][:, 3], atol=1e-3)
