"""The challenge, from a dataset folder to the file one uploads."""

import json
import shutil

import numpy as np
import pycolmap
import pytest
from aachen_folder import DATABASE, NIGHT, exact_matcher, write_dataset
from scipy.spatial.transform import Rotation

from pdc_sfm.aachen.challenge import ChallengeSettings, run_challenge
from pdc_sfm.aachen.dataset import AachenDataset, LayoutError
from pdc_sfm.colmap.io.models import load_model, model_poses
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.mapping.registration import triangulate_database
from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.measures.poses import pose_error


@pytest.fixture(scope="module", params=["1.0", "1.1"])
def finished(request, tmp_path_factory):
    """One run of each version. Not changed by the tests."""
    root = tmp_path_factory.mktemp("aachen")
    scene, dataset = write_dataset(root / "data", request.param)
    before = dataset.challenge_database.read_bytes()
    result = run_challenge(dataset, root / "out", exact_matcher(scene))
    assert dataset.challenge_database.read_bytes() == before  # pycolmap would have migrated it
    return scene, dataset, root / "out", result


def test_night_queries_get_their_true_poses(finished):
    scene, _, _, result = finished
    written = read_poses(result.path)
    assert set(written) == {"n0.png", "n1.png"}  # night only, base names
    for query in NIGHT:
        distance, angle = pose_error(written[query.split("/")[-1]], scene.poses[query])
        assert distance < 1e-3
        assert angle < 1e-2
    assert str(result) == "2 of 2 night queries registered"


def test_the_file_has_the_benchmarks_name(finished):
    _, dataset, _, result = finished
    name = {"1.0": "Aachen_eval_[pdcnet_plus].txt", "1.1": "Aachen_v1_1_eval_[pdcnet_plus].txt"}[dataset.version]
    assert result.path.name == name


def test_poses_and_intrinsics_of_the_reference_stay(finished):
    scene, _, output, _ = finished
    model = load_model(output / "sfm_registered")
    for name, pose in model_poses(model).items():
        if name in DATABASE:
            np.testing.assert_allclose(pose, scene.poses[name], atol=1e-9)
    for image in model.images.values():
        if image.name in [*DATABASE, *NIGHT]:
            kept = model.camera(image.camera_id).params
            np.testing.assert_allclose(kept, scene.cameras[image.name].params, rtol=1e-12)


def test_the_map_says_whether_the_poses_agree_with_the_matches(finished, tmp_path, said):
    scene, dataset, output, _ = finished
    assert json.loads((output / "sfm_database" / "summary.json").read_text())["verdict"]["kind"] == "consistent"
    model = load_model(output / "sfm_empty")
    for number, frame in enumerate(model.frames.values()):  # 3 degrees each, about axes of their own
        turn = Rotation.from_rotvec(np.radians(3) * np.eye(3)[number % 3]).as_matrix()
        frame.rig_from_world = pycolmap.Rigid3d(turn @ frame.rig_from_world.matrix())
    (tmp_path / "off").mkdir()
    model.write(tmp_path / "off")
    triangulate_database(tmp_path / "off", output / "database.db", dataset.images, tmp_path / "sfm")
    assert json.loads((tmp_path / "sfm" / "summary.json").read_text())["verdict"]["kind"] == "doubtful"
    assert any(line.startswith("doubtful: the known poses contradict") for line in said())


def test_ids_are_those_of_the_database(finished):
    _, _, output, _ = finished
    with pycolmap.Database.open(output / "database.db") as database:
        for image in load_model(output / "sfm_database").images.values():
            stored = database.read_image_with_name(image.name)
            assert (stored.image_id, stored.camera_id) == (image.image_id, image.camera_id)


def test_each_pair_is_matched_once(finished):
    scene, dataset, output, _ = finished
    lines = (output / "pairs.txt").read_text().split("\n")[:-1]
    assert len(lines) == len({tuple(sorted(line.split())) for line in lines})
    with pycolmap.Database.open(output / "database.db") as database:
        assert database.num_matched_image_pairs() == len(lines)
        assert database.num_verified_image_pairs() == len(lines)


def test_a_stopped_run_goes_on_where_it_was(tmp_path, said):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    calls = []
    run_challenge(dataset, tmp_path / "out", exact_matcher(scene, calls))
    first = (tmp_path / "out" / "Aachen_eval_[pdcnet_plus].txt").read_text()
    shutil.rmtree(tmp_path / "out" / "sfm_registered")
    said()
    run_challenge(dataset, tmp_path / "out", exact_matcher(scene, calls))
    assert calls == ["pairs.txt"]
    assert [line for line in said() if line.endswith("...")] == ["registration ..."]
    assert (tmp_path / "out" / "Aachen_eval_[pdcnet_plus].txt").read_text() == first


def test_other_matching_settings_repeat_what_depends_on_them(tmp_path, said):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    calls = []
    run_challenge(dataset, tmp_path / "out", exact_matcher(scene, calls), matching={"threshold": 0.1})
    said()
    run_challenge(dataset, tmp_path / "out", exact_matcher(scene, calls), matching={"threshold": 0.2})
    assert len(calls) == 2
    assert [line for line in said() if "done before" in line] == ["pairs: done before", "reference poses: done before"]


def test_an_interruption_inside_a_step_leaves_it_to_be_done(tmp_path):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")

    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_challenge(dataset, tmp_path / "out", interrupted)
    calls = []
    result = run_challenge(dataset, tmp_path / "out", exact_matcher(scene, calls))
    assert len(calls) == 1
    assert len(result.poses) == 2


def test_a_query_without_matches_is_left_out(tmp_path):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    scene.visible[NIGHT[1]] = -1 - np.arange(len(scene.visible[NIGHT[1]]))
    result = run_challenge(dataset, tmp_path / "out", exact_matcher(scene), ChallengeSettings(method="mine"))
    assert result.path.name == "Aachen_eval_[mine].txt"
    assert set(read_poses(result.path)) == {"n0.png"}
    assert result.unregistered == (NIGHT[1],)


def test_a_database_image_without_matches_stops_nothing(tmp_path):
    scene, dataset = write_dataset(tmp_path / "data", "1.0")
    scene.visible[DATABASE[-1]] = -1 - np.arange(len(scene.visible[DATABASE[-1]]))
    result = run_challenge(dataset, tmp_path / "out", exact_matcher(scene))
    assert str(result) == "2 of 2 night queries registered"


def must_not_match(*_):
    raise AssertionError("matching has begun")


@pytest.mark.parametrize(
    ("gone", "what"),
    [
        ("database.db", "the challenge's database: expected at"),
        ("image_pairs_to_match.txt", "the challenge's pair list: expected at"),
        ("3D-models/database_intrinsics.txt", "intrinsics of the database images: expected at"),
        ("3D-models/aachen_cvpr2018_db.nvm", "reference poses: expected at"),
        ("queries/night_time_queries_with_intrinsics.txt", "night queries: expected at"),
        ("images_upright/query/night/nexus5x/n1.png", "1 images of query/night/nexus5x: expected at"),
    ],
)
def test_what_is_missing_is_said_before_matching(tmp_path, gone, what):
    _, dataset = write_dataset(tmp_path / "data", "1.0")
    (dataset.root / gone).unlink()
    with pytest.raises(LayoutError) as caught:
        run_challenge(dataset, tmp_path / "out", must_not_match)
    (problem,) = caught.value.problems
    assert problem.startswith(what)
    assert str(dataset.root) in problem


def test_all_that_is_missing_is_said_at_once(tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(LayoutError, match="7 things are missing"):
        run_challenge(AachenDataset(tmp_path / "data", "1.1"), tmp_path / "out", must_not_match)
    with pytest.raises(LayoutError, match="there is no folder"):
        run_challenge(AachenDataset(tmp_path / "nowhere", "1.1"), tmp_path / "out", must_not_match)


def test_a_database_of_another_version_is_refused(tmp_path):
    _, old = write_dataset(tmp_path / "old", "1.0")
    _, new = write_dataset(tmp_path / "new", "1.1")
    shutil.copy(old.challenge_database, new.challenge_database)
    with pytest.raises(FormatError, match=r"does not know 1 images .*sequences.*another version than 1\.1"):
        run_challenge(new, tmp_path / "out", must_not_match)
    new.challenge_database.write_text("not a database")
    with pytest.raises(FormatError, match="is not a COLMAP database"):
        run_challenge(new, tmp_path / "out", must_not_match)


def test_a_database_of_a_newer_colmap_is_refused(tmp_path):
    import sqlite3

    _, dataset = write_dataset(tmp_path / "data", "1.0")
    with sqlite3.connect(dataset.challenge_database) as connection:
        connection.execute("PRAGMA user_version = 99000000")
    connection.close()
    with pytest.raises(FormatError, match="newer than pycolmap"):
        run_challenge(dataset, tmp_path / "out", must_not_match)
