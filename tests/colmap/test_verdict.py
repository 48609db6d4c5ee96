"""A map says so when it is wrong: parts joined by a patch, images that strong pairs contradict, known poses that are off."""

import dataclasses
import importlib
import itertools
import json

import numpy as np
import pycolmap
import pytest
from pair_evidence import evidence
from projections import Scene, make_scene, write_features, write_images, write_matches, write_model, write_pairs
from scipy.spatial.transform import Rotation

from pdc_sfm.cli import main as cli
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.mapping import parts
from pdc_sfm.colmap.mapping.coverage_cells import GRID, cell_numbers
from pdc_sfm.colmap.mapping.evidence import FEWEST_CLOSE, PairEvidence, PairScales, explained_matches, weigh_pairs
from pdc_sfm.colmap.mapping.links import connected_parts, find_links
from pdc_sfm.colmap.mapping.parts import check_parts, separate_parts
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.colmap.mapping.verdict import judge_links

QUICK = ReconstructionSettings(refine_keypoints=False, threads=1)
HERE, THERE = ([f"{place}{number}.png" for number in range(4)] for place in ("here", "there"))


def two_places(poster: int = 60) -> Scene:
    """Two places that have nothing in common but a poster of so many points, small and in the middle of both."""
    here, there = make_scene(HERE, points=1500, seed=1, vary=0), make_scene(THERE, points=1500, seed=2, vary=0)
    rng = np.random.default_rng(3)
    patch = np.c_[rng.uniform(-0.2, 0.2, (poster, 2)), rng.uniform(5.8, 6.2, poster)]
    joint = Scene({}, {}, np.r_[here.points, there.points, patch], {}, {})
    for scene, start in ((here, 0), (there, 1500)):
        for name in scene.names:
            camera, pose = scene.cameras[name], scene.poses[name]
            pixels = np.asarray(camera.img_from_cam(patch @ pose[:, :3].T + pose[:, 3]))
            joint.cameras[name], joint.poses[name] = camera, pose
            joint.visible[name] = np.r_[scene.visible[name] + start, 3000 + np.arange(poster)]
            joint.keypoints[name] = np.r_[scene.keypoints[name], (pixels - 0.5).astype(np.float32)]
    return joint


def files(scene: Scene, folder, pairs=None) -> dict:
    pairs = pairs or scene.pairs()
    return dict(
        images=write_images(scene, folder / "images"),
        pairs=write_pairs(folder / "pairs.txt", pairs),
        features=write_features(scene, folder / "features.h5"),
        matches=write_matches(scene, folder / "matches.h5", pairs),
        output=folder / "sfm",
    )


def words(arguments: dict) -> list[str]:
    return [word for key, value in arguments.items() for word in (f"--{key}", str(value))]


def test_a_right_map_is_consistent_and_says_so(tmp_path, capsys):
    arguments = files(make_scene(HERE, points=1500, vary=0), tmp_path)
    assert cli(["reconstruct", *words(arguments), "--strict", "refine_keypoints=false"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("the map is consistent")
    said = json.loads((arguments["output"] / "summary.json").read_text())["verdict"]
    assert said == {"kind": "consistent", "reasons": [], "images": [], "parts": [], "pairs": []}


def moved(scene: Scene, names, model: pycolmap.Reconstruction) -> pycolmap.Reconstruction:
    """A model with some cameras a quarter turn further round than they are."""
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler("y", 40, degrees=True).as_matrix()
    turn[:3, 3] = np.array([0, 0, 6.0]) - turn[:3, :3] @ [0, 0, 6.0]
    for image in model.images.values():
        if image.name in names:
            pose = np.r_[scene.poses[image.name], [[0, 0, 0, 1]]] @ turn
            model.frame(image.frame_id).rig_from_world = pycolmap.Rigid3d(pose[:3])
    return model


@pytest.fixture
def model_and_database(tmp_path):
    """A scene, its true cameras as a model, and a database of its verified pairs with the same ids."""

    def make(scene):
        arguments = files(scene, tmp_path)
        reference = write_model(scene, tmp_path / "true")
        settings = TriangulationSettings(refine_keypoints=False, geometry="none", two_view_tracks=True)
        triangulate(reference, **{**arguments, "output": tmp_path / "posed"}, settings=settings)
        return load_model(reference), tmp_path / "posed" / "database.db"

    return make


def test_the_true_cameras_explain_all_pairs(model_and_database):
    model, database = model_and_database(make_scene(HERE, points=1500, vary=0))
    pairs = list(weigh_pairs(model, database))
    assert len(pairs) == 6
    assert min(pair.explained for pair in pairs) > 0.999
    assert all(200 < pair.cells == pair.explained_cells <= pair.occupied for pair in pairs)
    assert not any(link.is_weak or link.is_contradicted for link in find_links(model.reg_image_ids(), pairs))


def test_an_image_that_stands_elsewhere_than_its_pairs_say_is_contradicted(model_and_database):
    scene = make_scene(HERE, points=1500, vary=0)
    model, database = model_and_database(scene)
    pairs = list(weigh_pairs(moved(scene, HERE[3:], model), database))
    parts = connected_parts(model.reg_image_ids(), [pair for pair in pairs if pair.explained >= 0.5])
    assert [len(part) for part in parts] == [3, 1]


def test_what_one_pair_contradicts_is_said_once(model_and_database):
    model, _ = model_and_database(make_scene(HERE, points=600, vary=0))
    first, second, third, fourth = sorted(model.reg_image_ids())
    pairs = [evidence(first, second, 500), evidence(second, third, 400), evidence(third, fourth, 500)]
    verdict = judge_links(model, [*pairs, evidence(first, fourth, 300, 0.0)])
    assert verdict.kind == "doubtful"
    (line,) = verdict.reasons
    shares = [f"{cells / (64 * 48):.0%} of the picture" for cells in (400, 300)]
    assert (
        f"the map follows {HERE[1]} - {HERE[2]} ({shares[0]}) and contradicts {HERE[0]} - {HERE[3]} ({shares[1]})"
        in line
    )
    assert verdict.pairs == (("the map follows", HERE[1], HERE[2]), ("it contradicts", HERE[0], HERE[3]))


@pytest.mark.parametrize(("explained", "kind"), [(0.98, "consistent"), (0.74, "doubtful")])
def test_a_map_that_explains_the_pairs_it_follows_in_part_only_is_doubtful(model_and_database, explained, kind):
    model, _ = model_and_database(make_scene(HERE, points=600, vary=0))
    ids = sorted(model.reg_image_ids())
    pairs = [evidence(a, b, 900, explained) for a, b in itertools.combinations(ids, 2)]
    small = evidence(ids[0], ids[3], 60, 0.0)  # says nothing of the pairs that it follows
    verdict = judge_links(model, [*pairs, small])
    assert verdict.kind == kind
    assert all("the map explains only 74% of the matches that hold" in line for line in verdict.reasons)


def test_one_part_that_stands_near_its_place_only_is_named(model_and_database):
    model, _ = model_and_database(make_scene(HERE, points=600, vary=0))
    ids = sorted(model.reg_image_ids())
    pairs = [evidence(a, b, 900) for a, b in itertools.combinations(ids[:3], 2)]
    near = dataclasses.replace(
        evidence(ids[0], ids[3], 500), exact=0.7
    )  # explained all the same, by verification's 4 px
    verdict = judge_links(model, [*pairs, near])
    assert verdict.kind == "doubtful"
    assert verdict.images == (HERE[3],)


def test_how_closely_pairs_are_explained_is_measured_by_the_size_of_pictures(model_and_database):
    """Two pixels off are within verification's four, but not within a 256th of 320 pixels."""
    scene = make_scene(HERE, points=1500, vary=0)
    model, database = model_and_database(scene)
    turn = Rotation.from_euler("x", 4 / 500).as_matrix()  # up to some 4 pixels, at right angles to where cameras move
    for image in model.images.values():
        if image.name == HERE[3]:
            model.frame(image.frame_id).rig_from_world = pycolmap.Rigid3d(turn @ scene.poses[HERE[3]])
    pairs = [pair for pair in weigh_pairs(model, database) if model.image(pair.second).name == HERE[3]]
    assert len(pairs) == 3
    assert all(pair.exact < pair.explained for pair in pairs)


def test_a_map_need_not_explain_matches_more_closely_than_their_own_geometry_does(model_and_database):
    scene = make_scene(HERE, points=1500, vary=0)
    model, database = model_and_database(scene)
    turn = Rotation.from_euler("z", 0.012).as_matrix()  # nothing in the middle, up to some 4 pixels at the sides
    for image in model.images.values():
        if image.name == HERE[3]:
            model.frame(image.frame_id).rig_from_world = pycolmap.Rigid3d(turn @ scene.poses[HERE[3]])
    ids = tuple(model.find_image_with_name(name).image_id for name in (HERE[0], HERE[3]))
    relative = [model.image(i).cam_from_world() for i in ids]
    between = relative[1] * relative[0].inverse()
    essential = np.cross(np.eye(3), between.translation).T @ between.rotation.matrix()
    with pycolmap.Database.open(database) as opened:
        found = np.asarray(opened.read_two_view_geometry(*ids).inlier_matches, np.int64)
        weigh = PairScales(model, opened)
        alone, beside = (weigh(ids, found, matrix).exact for matrix in (None, essential))
    assert 0.2 < alone < 0.9
    assert beside == pytest.approx(alone / max(alone, FEWEST_CLOSE), abs=0.01)


def test_cells_are_a_64th_of_the_longer_side():
    camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=1024, height=768, params=(900, 512, 384))
    points = np.array([[0.5, 0.5], [15.9, 15.9], [16.1, 0.5], [1023.9, 767.9]])
    numbers = cell_numbers(points, camera)
    assert numbers[0] == numbers[1]
    assert len(set(numbers.tolist())) == 3
    assert GRID * 16 == 1024


@pytest.mark.parametrize(("change", "share"), [("none", 1.0), ("behind", 0.0), ("turned", 0.0), ("same place", 1.0)])
def test_matches_are_explained_near_their_lines_and_before_the_cameras(change, share):
    rng = np.random.default_rng(0)
    points = np.c_[rng.uniform(-2, 2, (200, 2)), rng.uniform(4, 9, 200)]
    rotation, translation = Rotation.from_rotvec([0.1, -0.3, 0.2]).as_matrix(), np.array([0.5, 0.2, -0.3])
    if change == "same place":
        translation = np.zeros(3)
    rays = [seen[:, :2] / seen[:, 2:] for seen in (points, points @ rotation.T + translation)]
    translation = -translation if change == "behind" else translation
    rotation = rotation @ Rotation.from_rotvec([0, 0.5, 0]).as_matrix() if change == "turned" else rotation
    assert explained_matches(rotation, translation, *rays, (0.01, 0.01)).mean() == pytest.approx(share, abs=0.1)


def test_known_poses_that_contradict_the_matches_are_noticed(tmp_path):
    scene = make_scene(HERE, points=1500, vary=0)
    arguments, settings = files(scene, tmp_path), TriangulationSettings(refine_keypoints=False, two_view_tracks=True)
    right = triangulate(write_model(scene, tmp_path / "true"), **arguments, settings=settings)
    assert right.verdict.kind == "consistent"
    rng = np.random.default_rng(0)
    for name in scene.names:  # 2 degrees and 4 cm
        axis, shift = rng.normal(size=3), rng.normal(size=3)
        turn = Rotation.from_rotvec(np.radians(2) * axis / np.linalg.norm(axis)).as_matrix()
        scene.poses[name] = turn @ scene.poses[name]
        scene.poses[name][:, 3] += 0.04 * shift / np.linalg.norm(shift)
    off = triangulate(write_model(scene, tmp_path / "off"), **arguments, settings=settings)
    assert off.verdict.kind == "doubtful"
    assert "the known poses contradict" in off.verdict.reasons[-1]


def test_one_known_pose_that_is_off_is_named(tmp_path):
    names = [f"{number}.png" for number in range(8)]
    scene = make_scene(names, points=1500, vary=0)
    arguments, settings = files(scene, tmp_path), TriangulationSettings(refine_keypoints=False, two_view_tracks=True)
    turn = Rotation.from_euler("x", 5, degrees=True).as_matrix()
    scene.poses[names[2]] = turn @ scene.poses[names[2]]
    off = triangulate(write_model(scene, tmp_path / "off"), **arguments, settings=settings)
    assert off.verdict.images == (names[2],)


def names_of(model) -> set[str]:
    return {model.image(image_id).name for image_id in model.reg_image_ids()}


def places(model) -> set[str]:
    return {name.rstrip("0123.png") for name in names_of(model)}


def test_two_places_that_share_a_poster_become_two_models(tmp_path, capsys):
    arguments = files(two_places(), tmp_path)
    assert cli(["reconstruct", *words(arguments), "--strict", "refine_keypoints=false"]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("THIS MODEL FALLS APART")
    assert "not registered, unproven" in said.out
    models = [load_model(arguments["output"]), load_model(arguments["output"] / "models" / "1")]
    assert [model.num_reg_images() for model in models] == [4, 4]
    assert {frozenset(places(model)) for model in models} == {frozenset({"here"}), frozenset({"there"})}
    verdict = json.loads((arguments["output"] / "summary.json").read_text())["verdict"]
    assert sorted(map(len, verdict["parts"])) == [4, 4]


def test_a_single_image_that_only_a_poster_ties_is_left_out_and_the_rest_is_judged_by_itself(tmp_path):
    scene = two_places()
    near = [(a, b) for a, b in scene.pairs() if not {a, b} & set(THERE[1:])]  # of the other place one image
    result = reconstruct(**files(scene, tmp_path, near), settings=QUICK)
    assert places(result.model) == {"here"}
    assert any(line.startswith(f"not registered, unproven: {THERE[0]}; ") for line in result.remarks)
    assert result.verdict.kind == "consistent"
    joined = dataclasses.replace(QUICK, split_weak_links=False)
    result = reconstruct(**{**files(scene, tmp_path / "joined", near), "output": tmp_path / "whole"}, settings=joined)
    assert places(result.model) == {"here", "there"}
    assert result.verdict.kind == "falls apart"


def test_images_of_one_place_are_no_part_of_their_own(model_and_database):
    scene = make_scene(HERE, points=1500, vary=0)
    for kind in (scene.poses, scene.cameras, scene.visible, scene.keypoints):  # two of the same place
        kind[HERE[1]] = kind[HERE[0]]
    model, database = model_and_database(scene)
    model = pycolmap.triangulate_points(model, database, database.parent, database.parent)
    ids = {image.name: image.image_id for image in model.images.values()}
    pairs = [evidence(ids[HERE[0]], ids[HERE[1]], 900), evidence(ids[HERE[2]], ids[HERE[3]], 800)]
    assert [names_of(part) for part in separate_parts(model, pairs)] == [{HERE[2], HERE[3]}]


@pytest.fixture
def check_of(model_and_database, monkeypatch):
    """What the check makes of a right model of six images, were its pairs these (by number)."""

    def check(pairs, split=True):
        names = [f"{number}.png" for number in range(6)]
        scene = make_scene(names, points=1500, vary=0)
        model, database = model_and_database(scene)
        model = pycolmap.triangulate_points(model, database, database.parent, database.parent)
        ids = [next(i for i in model.images if model.image(i).name == name) for name in names]
        found = [dataclasses.replace(pair, first=ids[pair.first], second=ids[pair.second]) for pair in pairs]
        monkeypatch.setattr(parts, "weigh_pairs", lambda *_: found)
        checked = check_parts(model, database, write_images(scene, database.parent / "images"), split)
        return checked, [names.index(name) for name in sorted(names_of(checked.models[0]))]

    return check


# All agree but the first image and the last, which one pair ties to the others.
FIVE_AND_ONE = [*(evidence(a, b, 900) for a, b in itertools.combinations(range(5), 2)), evidence(4, 5, 800)]


def test_an_image_that_pairs_disagree_on_is_left_out_and_the_rest_is_judged_by_itself(check_of):
    checked, left = check_of([*FIVE_AND_ONE, evidence(0, 5, 700, 0.0)])
    assert checked.disputed == ("5.png",)
    assert checked.verdict.kind == "consistent"
    assert left == [0, 1, 2, 3, 4]


def test_a_pair_of_little_weight_disputes_nothing(check_of):
    checked, left = check_of([*FIVE_AND_ONE, evidence(0, 5, 200, 0.0)])
    assert (checked.disputed, checked.verdict.kind, len(left)) == ((), "consistent", 6)


def still(first: int, second: int, share: float) -> PairEvidence:
    """A pair of which this share of matches stands still."""
    return dataclasses.replace(evidence(first, second, 900), still=share)


HALVES = [evidence(a, b, 900) for a, b in ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5))]


@pytest.mark.parametrize(
    ("pairs", "split"),
    [
        pytest.param([*HALVES, evidence(2, 3, 800), evidence(0, 5, 700, 0.0)], True, id="half of the images"),
        pytest.param(
            [*FIVE_AND_ONE, evidence(0, 5, 700, 0.0), still(0, 3, 0.9), still(1, 4, 0.9)],
            True,
            id="sides laid over each other",
        ),
        pytest.param([*FIVE_AND_ONE, evidence(0, 5, 700, 0.0)], False, id="asked to stay"),
    ],
)
def test_what_pairs_disagree_on_stays_and_is_said_where_the_rest_may_be_no_better(check_of, pairs, split):
    checked, left = check_of(pairs, split)
    assert (checked.disputed, checked.verdict.kind, len(left)) == ((), "doubtful", 6)


@pytest.mark.parametrize(("share", "kind", "count"), [(0.0, "consistent", 5), (0.9, "falls apart", 6)])
def test_an_image_that_little_holds_stays_where_sides_were_laid_over_each_other(check_of, share, kind, count):
    pairs = [*FIVE_AND_ONE[:-1], evidence(4, 5, 150), still(0, 3, share), still(1, 4, share)]
    checked, left = check_of(pairs)
    assert (checked.verdict.kind, len(left)) == (kind, count)


def test_without_the_split_the_joined_map_is_said_to_fall_apart(tmp_path):
    settings = dataclasses.replace(QUICK, split_weak_links=False)
    result = reconstruct(**files(two_places(), tmp_path), settings=settings)
    assert places(result.model) == {"here", "there"}  # the mapper joins them
    assert result.verdict.kind == "falls apart"


def test_unregistered_images_say_why(tmp_path):
    scene = make_scene([*HERE, "alone.png", "few.png"], points=1500, vary=0)
    scene.visible["few.png"] = np.r_[
        scene.visible["few.png"][:20], 9000 + np.arange(len(scene.visible["few.png"]) - 20)
    ]
    scene.visible["alone.png"] = 20000 + np.arange(len(scene.visible["alone.png"]))
    result = reconstruct(**files(scene, tmp_path), settings=QUICK)
    assert any(line.startswith("not registered, no partner: alone.png; ") for line in result.remarks)
    assert any(line.startswith("not registered, too few matches: few.png; ") for line in result.remarks)
    assert result.verdict.kind == "consistent"


def test_the_same_map_is_judged_with_and_without_a_measure(tmp_path):
    """Two places that one poster joins: it covers little, what else they show does not match, and cameras stand in pairs."""
    scene = two_places()
    arguments = files(scene, tmp_path)
    output = arguments.pop("output")
    reconstruct(**arguments, output=output, settings=dataclasses.replace(QUICK, split_weak_links=False))
    maps, ablation = importlib.import_module("honesty_maps"), importlib.import_module("honesty_ablation")
    one = maps.Map("two places", True, scene.names, (maps.Source(scene.names, scene.poses),))
    images = arguments["images"]
    judged, without = (ablation.check(one, output, images, left) for left in ((), ("cells", "missing", "places")))
    assert (judged["registered"], judged["verdict"]) == (4, "falls apart")
    assert (without["registered"], without["verdict"]) == (8, "consistent")
