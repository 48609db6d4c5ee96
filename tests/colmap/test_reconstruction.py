"""Cameras are found from matches alone, up to a similarity."""

import json

import h5py
import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_pairs

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.models import ReconstructionError, Verdict, load_model, model_poses
from pdc_sfm.colmap.mapping import parts, reconstruction
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.remarks import camera_remarks
from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.evaluation.measures.poses import reconstruction_errors
from pdc_sfm.settings import load_settings

NAMES = [f"{i}.png" for i in range(7)]
TRUE_CAMERA = ("camera.model=PINHOLE", "camera.params=500,500,320,240", "camera.mode=single", "camera.refine=false")


@pytest.fixture
def inputs(tmp_path):
    """A scene of one known pinhole camera, and the arguments of `reconstruct`."""
    scene = make_scene(NAMES, model="PINHOLE", params=(500, 500, 320, 240), vary=0)
    arguments = dict(
        images=write_images(scene, tmp_path / "images"),
        pairs=write_pairs(tmp_path / "pairs.txt", scene.pairs()),
        features=write_features(scene, tmp_path / "features.h5"),
        matches=write_matches(scene, tmp_path / "matches.h5", scene.pairs()),
        output=tmp_path / "sfm",
    )
    return scene, arguments


@pytest.mark.parametrize("mapper", ["incremental", "global"])
def test_exact_matches_and_intrinsics_give_the_true_cameras(inputs, mapper):
    scene, arguments = inputs
    settings = load_settings(ReconstructionSettings, None, [*TRUE_CAMERA, f"mapper={mapper}"])
    result = reconstruct(**arguments, settings=settings)
    assert result.summary.registered == result.summary.images == len(NAMES)
    assert result.summary.mean_track_length > 4
    assert result.summary.reprojection_error < 1e-2
    errors = reconstruction_errors(model_poses(load_model(arguments["output"])), scene.poses)
    assert errors.degrees.max() < 2e-3  # 0.02 px at this focal length
    assert errors.percents.max() < 0.01
    assert [tuple(c.params) for c in result.model.cameras.values()] == [(500, 500, 320, 240)]


def test_unknown_focal_length_is_found(inputs):
    scene, arguments = inputs
    settings = ReconstructionSettings(camera=CameraSettings(model="SIMPLE_PINHOLE", mode="single"))
    result = reconstruct(**arguments, settings=settings)
    assert result.summary.registered == len(NAMES)
    (camera,) = result.model.cameras.values()
    assert camera.focal_length == pytest.approx(500, rel=0.02)  # COLMAP's guess is 768
    assert reconstruction_errors(model_poses(result.model), scene.poses).degrees.max() < 0.5


def test_wrong_matches_do_not_harm(inputs):
    scene, arguments = inputs
    write_matches(scene, arguments["matches"], scene.pairs(), wrong=0.3)
    result = reconstruct(**arguments, settings=load_settings(ReconstructionSettings, None, TRUE_CAMERA))
    assert result.summary.registered == len(NAMES)
    assert np.median(reconstruction_errors(model_poses(result.model), scene.poses).degrees) < 0.1


@pytest.fixture
def least(monkeypatch):
    """The least score of each attempt of a mapper that is led astray unless only sure matches are left.

    Five of seven images are lost then.
    """
    true_mapper, scores = reconstruction.map_incrementally, []

    def led_astray(database, images, scratch, settings, *rest):
        models = true_mapper(database, images, scratch, settings, *rest)
        scores.append(settings.min_score)
        for frame in list(models[0].reg_frame_ids())[2:] if not settings.min_score else []:
            models[0].deregister_frame(frame)
        return models

    monkeypatch.setattr(reconstruction, "map_incrementally", led_astray)
    return scores


def test_where_few_images_register_cameras_are_found_once_more_by_the_surest_matches(inputs, least):
    scene, arguments = inputs
    write_matches(scene, arguments["matches"], scene.pairs(), wrong=0.1)  # of score 0.4, the others of 0.8
    result = reconstruct(**arguments, settings=load_settings(ReconstructionSettings, None, list(TRUE_CAMERA)))
    assert least == [0, reconstruction.HIGH_CONFIDENCE]
    assert result.summary.registered == len(NAMES)
    assert reconstruction_errors(model_poses(result.model), scene.poses).degrees.max() < 2e-3


@pytest.mark.parametrize("score", [None, 0.5, 0.2])
def test_they_are_not_where_the_surest_matches_are_all_or_none(inputs, least, score):
    _, arguments = inputs
    with h5py.File(arguments["matches"], "r+") as file:
        for path in [f"{first}/{second}" for first in file for second in file[first]]:
            scores = file.pop(f"{path}/matching_scores0")
            if score is not None:
                file[f"{path}/matching_scores0"] = np.full(len(scores), score, np.float16)
    reconstruct(**arguments, settings=load_settings(ReconstructionSettings, None, list(TRUE_CAMERA)))
    assert least == [0]


def test_they_are_not_where_no_others_were_used(inputs, least):
    scene, arguments = inputs
    write_matches(scene, arguments["matches"], scene.pairs(), wrong=0.1)
    settings = load_settings(ReconstructionSettings, None, [*TRUE_CAMERA, "min_score=0.5"])
    reconstruct(**arguments, settings=settings)
    assert least == [0.5]


def test_a_second_run_gives_the_same_and_replaces_the_first(inputs):
    _, arguments = inputs
    settings = load_settings(ReconstructionSettings, None, [*TRUE_CAMERA, "threads=1"])  # sums of threads vary
    first = reconstruct(**arguments, settings=settings).summary
    assert reconstruct(**arguments, settings=settings).summary == first


def test_hloc_signature_returns_the_model(inputs):
    _, arguments = inputs
    model = reconstruction.main(
        arguments["output"], arguments["images"], arguments["pairs"], arguments["features"], arguments["matches"],
        camera_mode=pycolmap.CameraMode.SINGLE, image_list=NAMES[:5],
        image_options=dict(camera_model="PINHOLE", camera_params="500,500,320,240"),
        mapper_options=dict(ba_refine_focal_length=False),
    )  # fmt: skip
    assert {model.image(i).name for i in model.reg_image_ids()} == set(NAMES[:5])
    assert model.num_cameras() == 1
    assert model.camera(1).focal_length_x == 500


def test_an_image_that_matches_nothing_is_named(inputs):
    scene, arguments = inputs
    scene.visible[NAMES[-1]] = -1 - np.arange(len(scene.visible[NAMES[-1]]))  # shares no point with the others
    write_matches(scene, arguments["matches"], scene.pairs())
    result = reconstruct(**arguments, settings=load_settings(ReconstructionSettings, None, TRUE_CAMERA))
    assert (result.summary.registered, result.summary.images) == (len(NAMES) - 1, len(NAMES))
    (line,) = result.remarks
    assert line.startswith(f"not registered, no partner: {NAMES[-1]}; ")


def test_images_that_do_not_match_at_all_are_an_error_and_nothing_is_written(inputs):
    scene, arguments = inputs
    for number, name in enumerate(NAMES):
        scene.visible[name] = 1000 * number + np.arange(len(scene.visible[name]))
    write_matches(scene, arguments["matches"], scene.pairs())
    with pytest.raises(ReconstructionError, match="none of 21 pairs has 15 matches"):
        reconstruct(**arguments)
    assert not arguments["output"].exists()


def test_a_missing_or_broken_image_is_named(inputs):
    _, arguments = inputs
    (arguments["images"] / "3.png").write_bytes(b"broken")
    with pytest.raises(ImageError, match=r"3\.png is not a readable image"):
        reconstruct(**arguments)
    (arguments["images"] / "3.png").unlink()
    with pytest.raises(ImageError, match=r"3\.png: No such file"):
        reconstruct(**arguments)
    with pytest.raises(ImageError, match="is not a folder"):
        reconstruct(**{**arguments, "images": arguments["pairs"]})


def test_one_camera_for_images_of_two_sizes_is_refused(inputs):
    scene, arguments = inputs
    scene.cameras["2.png"].width = 700
    write_images(scene, arguments["images"])
    with pytest.raises(SettingsError, match=r"single needs images of one size, 2\.png has another"):
        reconstruct(**arguments, settings=ReconstructionSettings(camera=CameraSettings(mode="single")))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["camera.model=PINHOL"], "unknown camera model PINHOL: did you mean PINHOLE"),
        (["camera.model=PINHOLE", "camera.params=1,2,3"], "has 3 values, PINHOLE takes 4: fx, fy, cx, cy"),
        (["camera.mode=each"], "choose from auto, single, per_folder, per_image"),
        (["mapper=fast"], "choose from incremental, global"),
        (["verification.max_error=0"], "must be above 0"),
        (["camara.model=PINHOLE"], "did you mean camera"),
    ],
)
def test_impossible_settings_are_named(words, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(ReconstructionSettings, None, words)


def test_unknown_mapper_options_are_named(inputs):
    _, arguments = inputs
    with pytest.raises(SettingsError, match="mapper_options"):
        reconstruct(**arguments, mapper_options={"no_such_option": 1})


def test_points_of_two_images_are_used_where_images_have_few_partners(inputs):
    scene, arguments = inputs
    chain = [(a, b) for a, b in scene.pairs() if abs(NAMES.index(a) - NAMES.index(b)) == 1]  # no image sees a third
    write_pairs(arguments["pairs"], [p for p in chain if set(p) <= set(NAMES[:3])])
    settings = load_settings(ReconstructionSettings, None, TRUE_CAMERA)
    lengths = [p.track.length() for p in reconstruct(**arguments, settings=settings).model.points3D.values()]
    assert 2 in lengths
    write_pairs(arguments["pairs"], scene.pairs())
    lengths = [p.track.length() for p in reconstruct(**arguments, settings=settings).model.points3D.values()]
    assert min(lengths) >= 3


def test_cameras_come_from_a_part_of_the_keypoints_and_points_from_all(inputs):
    scene, arguments = inputs
    settings = load_settings(ReconstructionSettings, None, [*TRUE_CAMERA, "mapping_keypoints=100"])
    few = reconstruct(**arguments, settings=settings)
    every = reconstruct(**arguments, settings=load_settings(ReconstructionSettings, None, TRUE_CAMERA))
    assert few.summary.registered == len(NAMES)
    assert few.summary.points > 0.9 * every.summary.points > 100


def test_points_of_the_mapper_are_not_given_away_for_fewer(inputs, monkeypatch):
    _, arguments = inputs
    monkeypatch.setattr(reconstruction, "triangulate_all", lambda *arguments: pycolmap.Reconstruction())
    settings = load_settings(ReconstructionSettings, None, [*TRUE_CAMERA, "mapping_keypoints=100"])
    assert reconstruct(**arguments, settings=settings).summary.points > 50


def test_cameras_from_a_part_of_the_keypoints_points_from_all(inputs):
    scene, arguments = inputs
    few, whole = (
        reconstruct(**arguments, settings=load_settings(ReconstructionSettings, None, [*TRUE_CAMERA, word]))
        for word in ("mapping_keypoints=100", "mapping_keypoints=null")
    )
    assert few.summary.registered == len(NAMES)
    assert few.summary.points > 0.9 * whole.summary.points > 150
    assert np.median(reconstruction_errors(model_poses(few.model), scene.poses).degrees) < 0.1
    with pytest.raises(SettingsError, match="mapping_keypoints=5"):
        ReconstructionSettings(mapping_keypoints=5)


@pytest.mark.parametrize(
    ("word", "confirmed", "seen"),
    [
        ("min_support_ratio=0.6", False, False),
        ("min_support_ratio=0.6", True, True),
        ("min_support_ratio=0", False, True),
    ],
)
def test_weak_pairs_find_no_cameras(inputs, monkeypatch, word, confirmed, seen):
    """A pair of 20 matches, of keypoints that other pairs match too (which confirm it) or that they do not."""
    _, arguments = inputs
    with h5py.File(arguments["matches"], "r+") as file, h5py.File(arguments["features"], "r+") as features:
        found = file[NAMES[0]][NAMES[6]]["matches0"]
        few = np.where(np.cumsum(found[()] >= 0) <= 20, found[()], -1)
        if not confirmed:
            twins = few[few >= 0]
            points, image = features[NAMES[6]]["keypoints"][()], features[NAMES[6]]
            few[few >= 0] = len(points) + np.arange(20)
            del image["keypoints"]
            image["keypoints"] = np.concatenate((points, points[twins]))
        found[...] = few
    mapper, databases = reconstruction.map_incrementally, []

    def note(database, *rest):
        with pycolmap.Database.open(database) as opened:
            ids = {image.name: image.image_id for image in opened.read_all_images()}
            known = opened.exists_two_view_geometry(ids[NAMES[0]], ids[NAMES[6]])
            databases.append((known, opened.num_verified_image_pairs()))
        return mapper(database, *rest)

    monkeypatch.setattr(reconstruction, "map_incrementally", note)
    result = reconstruct(**arguments, settings=load_settings(ReconstructionSettings, None, [*TRUE_CAMERA, word]))
    assert databases == [(seen, 20 + seen)]
    assert result.summary.registered == len(NAMES)
    assert json.loads((arguments["output"] / "summary.json").read_text())["min_support_ratio"] == (not seen)


def test_what_is_weak_is_a_share():
    with pytest.raises(SettingsError, match="min_support_ratio=2"):
        ReconstructionSettings(min_support_ratio=2)


def model_of(sizes, known=False):
    model = pycolmap.Reconstruction()
    for number, size in enumerate(sizes, start=1):
        camera = pycolmap.Camera(
            camera_id=number, model="SIMPLE_RADIAL", width=size[0], height=size[1], params=[500, 1, 1, 0]
        )
        camera.has_prior_focal_length = known
        model.add_camera(camera)
    return model


@pytest.mark.parametrize(
    ("sizes", "known", "mode", "says"),
    [
        ([(640, 480)] * 3, False, "auto", True),
        ([(640, 480)] * 3, True, "auto", False),  # EXIF tells the focal lengths
        ([(640, 480)] * 3, False, "per_image", False),  # as wished
        ([(640, 480), (480, 640), (640, 480)], False, "auto", False),
    ],
)
def test_cameras_that_may_be_one_are_remarked_upon(sizes, known, mode, says):
    remarks = camera_remarks(model_of(sizes, known), CameraSettings(mode=mode))
    assert [("camera.mode=single" in remark) for remark in remarks] == [True] * says


def test_a_model_that_falls_apart_is_not_preferred_to_a_larger_one_that_does_not(inputs, monkeypatch):
    """COLMAP's models may share images: its largest, of 7, falls into 3 and 2, its next has 5, with those 3."""
    _, arguments = inputs
    settings = load_settings(ReconstructionSettings, None, [*TRUE_CAMERA])
    whole = reconstruct(**arguments, settings=settings).model

    def only(*numbers):
        found = pycolmap.Reconstruction(whole)
        manager = pycolmap.ObservationManager(found)
        for image in [found.image(i) for i in found.reg_image_ids()]:
            if int(image.name[0]) not in numbers:
                manager.deregister_frame(image.frame_id)
        return found

    def check(model, database, images, split=True):
        if model.num_reg_images() == 7:
            return parts.CheckedParts([only(0, 1, 2), only(5, 6)], Verdict("falls apart", ("little holds it",)))
        return parts.CheckedParts([model], Verdict())

    monkeypatch.setattr(
        reconstruction._MappingJob, "run", lambda job: [only(*range(7)), only(0, 1, 2, 3, 4), only(3, 4)]
    )
    monkeypatch.setattr(reconstruction, "check_parts", check)
    arguments["output"] = arguments["output"].with_name("other")
    result = reconstruct(**arguments, settings=settings)
    assert sorted(model_poses(result.model)) == NAMES[:5]
    assert result.verdict.kind == "consistent"
    apart = [sorted(model_poses(load_model(path))) for path in (arguments["output"] / "models").iterdir()]
    assert apart == [NAMES[5:]]  # and nothing that the main model has, too
