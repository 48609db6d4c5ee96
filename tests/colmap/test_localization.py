"""Queries are localized in a model; failures are named, results are written at once."""

import dataclasses
import json
import pickle

import h5py
import numpy as np
import pycolmap
import pytest
from projections import (
    make_scene,
    write_features,
    write_images,
    write_matches,
    write_model,
    write_pairs,
    write_queries,
)

from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.localization import localize_sfm
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
from pdc_sfm.colmap.localization.query import PoseSettings
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.evaluation.measures.poses import localization_recall, pose_error
from pdc_sfm.settings import load_settings

DATABASE = [f"db/{i}.png" for i in range(5)]
QUERIES = ["query/day/a.png", "query/night/b.png", "query/night/c.png"]
ORDER = [DATABASE[0], QUERIES[0], DATABASE[1], DATABASE[2], QUERIES[1], DATABASE[3], QUERIES[2], DATABASE[4]]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A scene, and the folder of a model of its database images. Not changed by the tests."""
    folder = tmp_path_factory.mktemp("world")
    scene = make_scene(ORDER)
    pairs = scene.pairs(DATABASE)
    triangulate(
        write_model(scene, folder / "known", DATABASE), write_images(scene, folder / "images", DATABASE),
        write_pairs(folder / "pairs.txt", pairs), write_features(scene, folder / "db.h5", DATABASE),
        write_matches(scene, folder / "m.h5", pairs), folder / "sfm",
    )  # fmt: skip
    return scene, folder


@pytest.fixture
def inputs(world, tmp_path):
    """Scene and arguments of `localize`, whose files a test may change."""
    scene, folder = world
    rows = [(query, image) for query in QUERIES for image in DATABASE]
    arguments = dict(
        reference=folder / "sfm",
        queries=write_queries(scene, tmp_path / "queries.txt", QUERIES),
        retrieval=write_pairs(tmp_path / "retrieval.txt", rows),
        features=write_features(scene, tmp_path / "f.h5"),
        matches=write_matches(scene, tmp_path / "m.h5", rows),
        results=tmp_path / "out" / "results.txt",
    )
    return scene, arguments


def settings(**pose):
    return LocalizationSettings(pose=PoseSettings(**pose), threads=1)


@pytest.mark.parametrize("pose", [{}, {"covisibility_clustering": True}, {"weighted": False}, {"best": 50}])
def test_exact_matches_give_the_true_poses(inputs, pose):
    scene, arguments = inputs
    result = localize(**arguments, settings=settings(**pose))
    assert (result.failed, result.left_out, result.fallback) == ({}, (), ())
    written = read_poses(arguments["results"])
    assert list(written) == ["a.png", "b.png", "c.png"]
    for query in QUERIES:
        distance, angle = pose_error(written[query.split("/")[-1]], scene.poses[query])
        assert distance < 1e-4
        assert angle < 1e-3  # 0.01 px at this focal length


def test_half_of_the_matches_may_be_wrong(inputs):
    scene, arguments = inputs
    rows = [(query, image) for query in QUERIES for image in DATABASE]
    write_matches(scene, arguments["matches"], rows, wrong=0.5)
    found = {name: pose.matrix() for name, pose in localize(**arguments, settings=settings()).poses.items()}
    true = {name: scene.poses[name] for name in QUERIES}
    assert localization_recall(found, true, [(0.01, 0.1)]) == (1.0,)


def test_confident_matches_count_more(inputs):
    """Half of the keypoints of each query are wrong by two pixels, and their matches are not sure."""
    scene, arguments = inputs
    random = np.random.default_rng(0)
    with h5py.File(arguments["features"], "r+") as features, h5py.File(arguments["matches"], "r+") as matches:
        for query in QUERIES:
            keypoints = features[query]["keypoints"]
            unsure = np.arange(len(keypoints)) % 2 == 0
            keypoints[...] = keypoints[()] + random.normal(0, 2, keypoints.shape) * unsure[:, None]
            for pair in matches[query.replace("/", "-")].values():
                pair["matching_scores0"][...] = np.where(unsure, 0.1, 0.5)
    errors = {}
    for weighted in (True, False):
        poses = localize(**arguments, settings=settings(weighted=weighted)).poses
        errors[weighted] = np.mean([pose_error(poses[q].matrix(), scene.poses[q])[0] for q in QUERIES])
    assert errors[True] < errors[False] / 2


def test_results_are_camera_from_world_with_the_real_part_first(inputs):
    scene, arguments = inputs
    localize(**arguments, settings=settings())
    name, *numbers = arguments["results"].read_text().splitlines()[0].split()
    numbers = np.array(numbers, float)
    rotation = pycolmap.Rotation3d(numbers[[1, 2, 3, 0]]).matrix()
    np.testing.assert_allclose(np.c_[rotation, numbers[4:]], scene.poses[QUERIES[0]], atol=1e-3)
    assert name == "a.png"


def test_log_has_the_keys_that_hloc_reads(inputs):
    scene, arguments = inputs
    localize(**arguments, settings=settings())
    with open(f"{arguments['results']}_logs.pkl", "rb") as file:
        logs = pickle.load(file)  # our own file
    assert set(logs) == {"features", "matches", "retrieval", "loc"}
    log = logs["loc"][QUERIES[0]]
    assert set(log) >= {"db", "PnP_ret", "keypoints_query", "points3D_ids", "num_matches", "keypoint_index_to_db"}
    count = len(log["points3D_ids"])
    assert log["PnP_ret"]["inlier_mask"].shape == (count,)
    keypoints, to_images = log["keypoint_index_to_db"]
    assert len(keypoints) == len(to_images) == len(log["keypoints_query"]) == count
    model = pycolmap.Reconstruction(arguments["reference"])
    for point_id, images in to_images:  # as hloc's visualization does
        observers = {element.image_id for element in model.points3D[point_id].track.elements}
        assert {log["db"][index] for index in images} <= observers
        assert images
    assert sum(len(images) for _, images in to_images) == log["num_matches"]


def test_clusters_are_logged_as_hloc_logs_them(inputs):
    _, arguments = inputs
    localize(**arguments, settings=settings(covisibility_clustering=True))
    with open(f"{arguments['results']}_logs.pkl", "rb") as file:
        log = pickle.load(file)["loc"][QUERIES[0]]
    assert log["covisibility_clustering"]
    assert log["log_clusters"][log["best_cluster"]]["PnP_ret"]["num_inliers"] > 100


def test_plain_record_shows_true_correspondences(inputs):
    scene, arguments = inputs
    localize(**arguments, settings=settings())
    record = json.loads((arguments["results"].parent / "results.txt_logs.json").read_text())
    entry = record["queries"][QUERIES[1]]
    assert entry["status"] == "localized"
    assert entry["retrieved"] == DATABASE
    image = entry["best_image"]
    for x0, y0, x1, y1 in entry["shown"]:
        first = np.abs(scene.keypoints[QUERIES[1]] - (x0, y0)).sum(axis=1).argmin()
        second = np.abs(scene.keypoints[image] - (x1, y1)).sum(axis=1).argmin()
        assert scene.visible[QUERIES[1]][first] == scene.visible[image][second]


def test_every_pose_has_a_probability_and_a_doubtful_one_says_why(inputs, caplog):
    _, arguments = inputs
    result = localize(**arguments, settings=settings())
    plain = arguments["results"].read_text()
    assert set(result.probabilities) == set(QUERIES)
    assert min(result.probabilities.values()) > 0.5  # exact matches
    assert result.doubts == {}
    with caplog.at_level("DEBUG"):
        doubtful = localize(**arguments, settings=dataclasses.replace(settings(), doubtful=1.0))
    assert f"{QUERIES[0]}: {result.inliers[QUERIES[0]]} inliers, right with probability 0." in caplog.text
    assert set(doubtful.doubts) == set(QUERIES)
    assert str(doubtful) == "3 of 3 queries localized (3 doubtful)"
    assert next(iter(doubtful.remarks())).startswith(f"doubtful: {QUERIES[0]}: right with probability 0.")
    assert arguments["results"].read_text() == plain  # who uploads the file gets what the benchmark takes
    entry = json.loads((arguments["results"].parent / "results.txt_logs.json").read_text())["queries"][QUERIES[0]]
    assert entry["probability"] == round(doubtful.probabilities[QUERIES[0]], 3)
    assert entry["doubt"] == doubtful.doubts[QUERIES[0]]
    assert entry["evidence"]["images"] == len(DATABASE)
    with pytest.raises(SettingsError, match="doubtful=2"):
        LocalizationSettings(doubtful=2)


def random_query(scene, arguments, name):
    """Give all matches of a query to random keypoints."""
    rng = np.random.default_rng(0)
    with h5py.File(arguments["matches"], "r+") as file:
        for image in DATABASE:
            data = file[f"{name.replace('/', '-')}/{image.replace('/', '-')}/matches0"]
            data[...] = rng.integers(0, len(scene.keypoints[image]), len(data))


def test_a_query_that_cannot_be_localized_is_named_and_left_out(inputs):
    scene, arguments = inputs
    random_query(scene, arguments, QUERIES[1])
    result = localize(**arguments, settings=settings())
    assert set(read_poses(arguments["results"])) == {"a.png", "c.png"}
    assert "inliers of" in result.failed[QUERIES[1]]
    assert str(result) == "2 of 3 queries localized"


def test_nearest_pose_is_written_only_on_request_and_counted_apart(inputs):
    scene, arguments = inputs
    random_query(scene, arguments, QUERIES[1])
    result = localize(**arguments, settings=LocalizationSettings(fallback="nearest", threads=1))
    np.testing.assert_allclose(read_poses(arguments["results"])["b.png"], scene.poses[DATABASE[0]], atol=1e-9)
    assert result.fallback == (QUERIES[1],)
    assert str(result) == "2 of 3 queries localized, 1 given their nearest image's pose"


def test_two_places_are_told_apart_by_clusters(tmp_path):
    """Half of the retrieved images show another place with a consistent but wrong geometry."""
    names = [f"{place}/{i}.png" for place in "ab" for i in range(4)] + ["q.png"]
    scene = make_scene(names)
    for name in names[4:8]:  # place b lies 100 m to the right, with points of its own
        scene.visible[name] = scene.visible[name] + 1000
        scene.poses[name] = scene.poses[name] @ np.vstack([np.c_[np.eye(3), (-100, 0, 0)], (0, 0, 0, 1)])
    pairs = scene.pairs(names[:4]) + scene.pairs(names[4:8])
    triangulate(
        write_model(scene, tmp_path / "known", names[:8]), write_images(scene, tmp_path / "images", names[:8]),
        write_pairs(tmp_path / "pairs.txt", pairs), write_features(scene, tmp_path / "f.h5"),
        write_matches(scene, tmp_path / "m.h5", pairs), tmp_path / "sfm",
    )  # fmt: skip
    rows = [("q.png", name) for name in names[:8]]
    scene.visible["q.png"][::3] += 1000  # one third of the query matches the other place, as if it were there
    result = localize(
        tmp_path / "sfm", write_queries(scene, tmp_path / "q.txt", ["q.png"]),
        write_pairs(tmp_path / "r.txt", rows), write_features(scene, tmp_path / "f.h5"),
        write_matches(scene, tmp_path / "m.h5", rows), tmp_path / "results.txt",
        settings(covisibility_clustering=True),
    )  # fmt: skip
    distance, angle = pose_error(result.poses["q.png"].matrix(), scene.poses["q.png"])
    assert distance < 1e-3
    assert angle < 0.01
    with open(tmp_path / "results.txt_logs.pkl", "rb") as file:
        assert len(pickle.load(file)["loc"]["q.png"]["log_clusters"]) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("query/x.png", r"queries\.txt line 5: query/x\.png has no intrinsics"),
        ("query/x.png PINHOL 640 480 1 1 1 1", r"line 5: query/x\.png: unknown camera model PINHOL: did"),
        ("query/x.png PINHOLE 640 480 1 1 1", r"PINHOLE takes 4 parameters \(fx, fy, cx, cy\), not 3"),
        ("query/x.png PINHOLE 640 480 1 1 1 abc", r"line 5: query/x\.png: could not convert"),
    ],
)
def test_a_bad_line_of_the_query_list_is_named(inputs, line, message):
    _, arguments = inputs
    with arguments["queries"].open("a") as file:
        file.write(line + "\n")
    with pytest.raises(FormatError, match=message):
        localize(**arguments)
    assert not arguments["results"].exists()


def test_query_lists_may_be_a_glob(inputs):
    scene, arguments = inputs
    folder = arguments["queries"].parent
    write_queries(scene, folder / "day_time_queries.txt", QUERIES[:1])
    write_queries(scene, folder / "night_time_queries.txt", QUERIES[1:])
    result = localize(**{**arguments, "queries": folder / "*_time_queries.txt"}, settings=settings())
    assert set(result.poses) == set(QUERIES)
    with pytest.raises(FormatError, match="no list of images with intrinsics"):
        localize(**{**arguments, "queries": folder / "*_none.txt"})


def test_empty_and_missing_retrieval_rows_fail_their_query_only(inputs):
    _, arguments = inputs
    rows = [f"{QUERIES[0]} {image}\n" for image in DATABASE]
    arguments["retrieval"].write_text(f"{QUERIES[1]}\n" + "".join(rows))
    result = localize(**arguments, settings=settings())
    assert result.failed == {QUERIES[1]: "nothing retrieved", QUERIES[2]: "no row in the retrieval list"}
    assert set(result.poses) == {QUERIES[0]}


def test_retrieved_images_outside_the_model_are_named_and_skipped(inputs):
    _, arguments = inputs
    with arguments["retrieval"].open("a") as file:
        file.write(f"{QUERIES[0]} db/gone.png\n{QUERIES[1]} db/gone.png\n")
    result = localize(**arguments, settings=settings())
    assert len(result.poses) == 3
    assert result.left_out == ("1 retrieved images are not in the model (first: db/gone.png)",)


def test_pairs_that_were_not_matched_are_named_and_skipped(inputs):
    scene, arguments = inputs
    rows = [(query, image) for query in QUERIES for image in DATABASE][1:]
    write_matches(scene, arguments["matches"], rows)
    result = localize(**arguments, settings=settings())
    assert len(result.poses) == 3
    assert result.left_out == (f"1 retrieved pairs without matches (first: {QUERIES[0]} {DATABASE[0]})",)


def test_model_and_features_of_different_runs_are_refused(inputs):
    scene, arguments = inputs
    scene.keypoints[DATABASE[1]], kept = scene.keypoints[DATABASE[1]][::-1].copy(), scene.keypoints[DATABASE[1]]
    write_features(scene, arguments["features"])
    scene.keypoints[DATABASE[1]] = kept
    with pytest.raises(FormatError, match=r"db/1\.png has .* model and features do not belong together"):
        localize(**arguments)
    assert not arguments["results"].exists()


def test_inputs_that_have_nothing_in_common_are_an_error(inputs):
    scene, arguments = inputs
    write_matches(scene, arguments["matches"], scene.pairs(DATABASE))
    with pytest.raises(FormatError, match="no query has anything to be localized by"):
        localize(**arguments)


def test_intrinsics_of_another_image_size_are_refused(inputs):
    scene, arguments = inputs
    camera = scene.cameras[QUERIES[0]]
    camera.width, kept = 1000, camera.width
    write_queries(scene, arguments["queries"], QUERIES)
    camera.width = kept
    with pytest.raises(FormatError, match=r"a\.png is 1000 x 480 in the query list"):
        localize(**arguments)


def test_equal_base_names_need_the_camera_name(inputs):
    scene, arguments = inputs
    scene.cameras["query/night/a.png"] = scene.cameras[QUERIES[0]]
    write_queries(scene, arguments["queries"], [QUERIES[0], "query/night/a.png"])
    with pytest.raises(SettingsError, match=r"would both be called a\.png"):
        localize(**arguments)
    localize(**arguments, settings=LocalizationSettings(prepend_camera_name=True))
    assert set(read_poses(arguments["results"])) == {"day/a.png"}


def test_hloc_signature(inputs):
    scene, arguments = inputs
    localize_sfm.main(
        pycolmap.Reconstruction(arguments["reference"]), arguments["queries"], arguments["retrieval"],
        arguments["features"], arguments["matches"], arguments["results"], ransac_thresh=8,
        covisibility_clustering=False, config={"refinement": {"refine_focal_length": False}},
    )  # fmt: skip
    assert len(read_poses(arguments["results"])) == 3


def test_settings_are_checked():
    with pytest.raises(SettingsError, match="ransac_threshold"):
        load_settings(LocalizationSettings, None, ["pose.ransac_threshold=0"])
    with pytest.raises(SettingsError, match="choose from none, nearest"):
        load_settings(LocalizationSettings, None, ["fallback=yes"])
