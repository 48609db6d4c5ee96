"""Full localization, from a dataset folder to the file one uploads."""

import shutil

import pytest
from aachen_folder import DATABASE, DAY, NIGHT, SEQUENCE, exact_matcher, write_dataset
from projections import write_pairs

from pdc_sfm.aachen.dataset import AachenDataset, LayoutError
from pdc_sfm.aachen.localization import AachenSettings, run_localization
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.evaluation.measures.poses import localization_recall
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import read_pairs


def retrieval_list(path, queries=(*DAY, *NIGHT)):
    return write_pairs(path, [(query, image) for query in queries for image in DATABASE])


@pytest.mark.parametrize(("version", "prefix"), [("1.0", "Aachen"), ("1.1", "Aachen_v1_1")])
def test_day_and_night_queries_get_their_true_poses(tmp_path, version, prefix):
    scene, dataset = write_dataset(tmp_path / "data", version)
    retrieval = retrieval_list(tmp_path / "retrieval.txt")
    path, result = run_localization(dataset, tmp_path / "out", exact_matcher(scene), retrieval)
    assert path == tmp_path / "out" / f"{prefix}_pdcnet_plus.txt"
    true = {query.split("/")[-1]: scene.poses[query] for query in [*DAY, *NIGHT]}
    assert localization_recall(read_poses(path), true, [(1e-3, 1e-2)]) == (1.0,)
    assert result.failed == {}
    registered = {image.name for image in load_model(tmp_path / "out" / "sfm").images.values()}
    assert registered == {*DATABASE, *(SEQUENCE if version == "1.1" else [])}


def test_covisible_images_are_matched(tmp_path):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    retrieval = retrieval_list(tmp_path / "retrieval.txt")
    settings = AachenSettings(covisible=2, retrieved=3)
    run_localization(dataset, tmp_path / "out", exact_matcher(scene), retrieval, settings)
    pairs = read_pairs(tmp_path / "out" / "pairs-db.txt")
    for name in DATABASE:
        shared = {other: len(scene.matches(name, other)) for other in DATABASE if other != name}
        best = max(shared, key=shared.get)
        assert (name, best) in pairs or (best, name) in pairs
    assert len(read_pairs(tmp_path / "out" / "pairs-query.txt")) == 3 * 3


def test_retrieval_may_be_a_function(tmp_path, said):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")

    def retrieve(images, queries, database, count, target):
        assert set(queries) == {*DAY, *NIGHT}
        assert database == DATABASE
        write_pairs(target, [(query, image) for query in queries for image in database[:count]])

    _, result = run_localization(dataset, tmp_path / "out", exact_matcher(scene), retrieve, retrieving={"mode": "a"})
    assert len(result.poses) == 3
    said()
    run_localization(dataset, tmp_path / "out", exact_matcher(scene), retrieve, retrieving={"mode": "b"})
    assert said() == [
        "reference poses: done before",
        "matching: done before",
        "triangulation: done before",
        "retrieval ...",
        "matching queries ...",
        "localization ...",
    ]


def test_a_stopped_run_goes_on_where_it_was(tmp_path, said):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    retrieval = retrieval_list(tmp_path / "retrieval.txt")
    calls = []
    arguments = (dataset, tmp_path / "out", exact_matcher(scene, calls), retrieval)
    run_localization(*arguments)
    shutil.rmtree(tmp_path / "out" / "sfm")
    said()
    run_localization(*arguments)
    assert calls == ["pairs-db.txt", "pairs-query.txt"]
    assert [line for line in said() if line.endswith("...")] == ["triangulation ...", "localization ..."]


def must_not_match(*_):
    raise AssertionError("matching has begun")


@pytest.mark.parametrize(
    ("gone", "what"),
    [
        ("3D-models/aachen_v_1_1/aachen_v_1_1.nvm", "reference poses: expected at"),
        ("3D-models/aachen_v_1_1/database_intrinsics_v1_1.txt", "intrinsics of the database images: expected at"),
        ("images_upright/sequences", "images of version 1.1's sequences: expected at"),
        ("images_upright/db/3.png", "1 images of db: expected at"),
        ("queries", "query lists: expected at"),
    ],
)
def test_what_is_missing_is_said_before_matching(tmp_path, gone, what):
    _, dataset = write_dataset(tmp_path / "data", "1.1")
    path = dataset.root / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(LayoutError) as caught:
        run_localization(dataset, tmp_path / "out", must_not_match, retrieval_list(tmp_path / "r.txt"))
    assert caught.value.problems[0].startswith(what)
    assert "datasets/README.md" in str(caught.value)


def test_images_may_lie_below_images(tmp_path):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    (dataset.root / "images").mkdir()
    (dataset.root / "images_upright").rename(dataset.root / "images" / "images_upright")
    result = run_localization(dataset, tmp_path / "out", exact_matcher(scene), retrieval_list(tmp_path / "r.txt"))[1]
    assert len(result.poses) == 3


def test_a_retrieval_list_of_another_dataset_is_refused(tmp_path):
    _, dataset = write_dataset(tmp_path / "data", "1.0")
    with pytest.raises(FormatError, match="retrieves nothing for any query"):
        run_localization(dataset, tmp_path / "out", must_not_match, retrieval_list(tmp_path / "r.txt", ["other.jpg"]))
    write_pairs(tmp_path / "r.txt", [(DAY[0], "elsewhere/1.jpg")])
    with pytest.raises(FormatError, match="retrieves no image of this database"):
        run_localization(dataset, tmp_path / "out", must_not_match, tmp_path / "r.txt")


def test_poses_and_intrinsics_of_different_versions_are_refused(tmp_path):
    _, dataset = write_dataset(tmp_path / "data", "1.0")
    lines = dataset.intrinsics.read_text().splitlines(keepends=True)
    dataset.intrinsics.write_text("".join(lines[1:]))
    with pytest.raises(FormatError, match=r"1 images of .*nvm have no line in .*first: db/0\.png"):
        run_localization(dataset, tmp_path / "out", must_not_match, retrieval_list(tmp_path / "r.txt"))


def test_there_is_no_other_version(tmp_path):
    with pytest.raises(FormatError, match=r"no Aachen version 2\.0: choose from 1\.0, 1\.1"):
        AachenDataset(tmp_path, "2.0")
    with pytest.raises(SettingsError, match="covisible=0"):
        load_settings(AachenSettings, None, ["covisible=0"])
