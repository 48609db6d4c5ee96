"""Photographs that say little of their cameras: equal runs end in equal maps, intrinsics stay sane, doubts are said."""

import copy
import dataclasses
import json

import numpy as np
import pycolmap
import pytest
from projections import Scene, look_at, write_features, write_images, write_matches, write_pairs

from pdc_sfm.cli import main as cli
from pdc_sfm.colmap.io.cameras import INTRINSIC_LIMITS, CameraSettings, intrinsic_limits, make_camera
from pdc_sfm.colmap.io.models import ReconstructionError, Verdict, summarize
from pdc_sfm.colmap.mapping import mappers, reconstruction, triangulation
from pdc_sfm.colmap.mapping.mappers import drop_bad_images
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.verdict import MAX_ERROR, judge

SIZE = (640, 480)
STEPS = {  # where the four cameras stand; the points are 5 to 9 away
    "turned on the spot": [(0.001, 0, 0), (0, -0.001, 0), (0, 0.001, 0.001), (0, 0, 0)],
    "hardly moved": [(0, 0, 0), (0.02, 0.01, 0.01), (0.04, 0, 0.02), (0.06, 0.01, 0.03)],
    "straight ahead": [(0, 0, 0), (0.05, 0, 0.8), (0, 0, 1.6), (0.05, 0, 2.4)],
    "sideways": [(-1.5, 0, 0), (-0.5, 0.2, 0), (0.5, 0, 0.3), (1.5, -0.2, 0)],
}


def photographs(folder, motion: str) -> dict:
    """Arguments of `reconstruct`: four photographs with noise of half a pixel, and a fifth of the matches wrong."""
    rng = np.random.default_rng(1)
    camera = pycolmap.Camera(model="SIMPLE_RADIAL", width=SIZE[0], height=SIZE[1], params=(600, 320, 240, 0.02))
    depth = np.full(400, 6.0) if motion == "straight ahead" else rng.uniform(5, 9, 400)
    scene = Scene({}, {}, np.c_[rng.uniform(-2.5, 2.5, (400, 2)), depth], {}, {})
    for number, center in enumerate(STEPS[motion]):
        name = f"{number}.png"
        pose = look_at(np.array(center), np.array([0.3 * (number - 1.5), 0.2 * (number % 2), 6.0]))
        pixels = np.asarray(camera.img_from_cam(scene.points @ pose[:, :3].T + pose[:, 3]))
        seen = rng.permutation(np.flatnonzero((pixels > 0).all(axis=1) & (pixels < SIZE).all(axis=1)))
        scene.cameras[name], scene.poses[name], scene.visible[name] = camera, pose, seen
        scene.keypoints[name] = (pixels[seen] - 0.5 + rng.normal(0, 0.5, (len(seen), 2))).astype(np.float32)
    return dict(
        images=write_images(scene, folder / "images"),
        pairs=write_pairs(folder / "pairs.txt", scene.pairs()),
        features=write_features(scene, folder / "features.h5"),
        matches=write_matches(scene, folder / "matches.h5", scene.pairs(), wrong=0.2),
        output=folder / "sfm",
    )


@pytest.mark.parametrize("motion", ["hardly moved", "straight ahead"])
def test_equal_runs_give_equal_maps(tmp_path, motion):
    arguments = photographs(tmp_path, motion)
    written = set()
    for run in range(5):
        arguments["output"] = tmp_path / f"sfm{run}"
        reconstruct(**arguments, settings=ReconstructionSettings(refine_keypoints=False, threads=4))
        written.add(tuple((arguments["output"] / f"{name}.bin").read_bytes() for name in ("cameras", "images")))
    assert len(written) == 1


@pytest.mark.parametrize(
    ("reproducible", "small", "threads"), [(True, 3, 1), (False, 4, 3), (None, 4, 1), (None, 3, 3)]
)
def test_the_mapper_has_one_thread_and_a_seed_for_small_sets_or_if_asked(
    tmp_path, monkeypatch, reproducible, small, threads
):
    monkeypatch.setattr(mappers, "SMALL_SET", small)
    given, mapping = [], pycolmap.incremental_mapping

    def note(database, images, folder, options, *rest, **calls):
        given.append((options.num_threads, options.random_seed))
        return mapping(database, images, folder, options, *rest, **calls)

    monkeypatch.setattr(pycolmap, "incremental_mapping", note)
    settings = ReconstructionSettings(refine_keypoints=False, threads=3, seed=5, reproducible=reproducible)
    reconstruct(**photographs(tmp_path, "straight ahead"), settings=settings)
    assert set(given) == {(threads, 5)}


@pytest.fixture
def runaway(monkeypatch):
    """A mapper whose intrinsics run away, all of them, where it may adjust them; the figures are of a real run."""
    mapping = pycolmap.incremental_mapping

    def run_away(database, images, folder, options, *rest, **calls):
        models = mapping(database, images, folder, options, *rest, **calls)
        for model in models.values() if options.ba_refine_focal_length else ():
            for camera in model.cameras.values():
                camera.params = [37716, *camera.params[1:3], -2208]
        return models

    monkeypatch.setattr(pycolmap, "incremental_mapping", run_away)


@pytest.mark.usefixtures("runaway")
def test_where_all_intrinsics_run_away_they_are_held_and_that_is_said(tmp_path, capsys):
    arguments = photographs(tmp_path, "straight ahead")
    words = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
    assert cli(["reconstruct", *words, "refine_keypoints=false"]) == 0
    said = capsys.readouterr().err
    assert "doubtful: the photographs do not tell focal lengths" in said
    assert said.splitlines()[-1].startswith("THIS MODEL IS DOUBTFUL")
    assert cli(["reconstruct", *words, "--strict", "refine_keypoints=false"]) == 1
    model = pycolmap.Reconstruction(arguments["output"])
    assert model.num_reg_images() == 4
    assert {tuple(camera.params) for camera in model.cameras.values()} == {(768, 320, 240, 0)}  # 1.2 times the width
    summary = json.loads((arguments["output"] / "summary.json").read_text())
    assert "do not tell focal lengths" in summary["verdict"]["reasons"][0]


@pytest.fixture
def distortion_runs_away(monkeypatch):
    """A mapper whose intrinsics run away where it may adjust distortion, as a toy's on a turntable did."""
    mapping = pycolmap.incremental_mapping

    def run_away(database, images, folder, options, *rest, **calls):
        models = mapping(database, images, folder, options, *rest, **calls)
        for model in models.values() if options.ba_refine_extra_params else ():
            for camera in model.cameras.values():
                camera.params = [*camera.params[:3], 1.3]
        return models

    monkeypatch.setattr(pycolmap, "incremental_mapping", run_away)


@pytest.mark.usefixtures("distortion_runs_away")
def test_where_only_distortion_runs_away_focal_lengths_are_adjusted_without_it(tmp_path):
    settings = ReconstructionSettings(refine_keypoints=False, camera=CameraSettings(mode="single"))
    result = reconstruct(**photographs(tmp_path, "sideways"), settings=settings)
    (camera,) = result.model.cameras.values()
    assert camera.params[0] == pytest.approx(600, rel=0.02)  # guessed: 768
    assert camera.params[3] == 0
    assert result.verdict.kind == "consistent"
    assert any("lens distortion was not adjusted" in line for line in result.remarks)


@pytest.mark.usefixtures("distortion_runs_away")
@pytest.mark.parametrize("motion", ["hardly moved", "straight ahead"])
def test_focal_lengths_that_photographs_hardly_tell_are_doubted_without_distortion_too(tmp_path, motion):
    settings = ReconstructionSettings(refine_keypoints=False, camera=CameraSettings(mode="single"))
    result = reconstruct(**photographs(tmp_path, motion), settings=settings)
    assert [camera.params[3] for camera in result.model.cameras.values()] == [0]
    assert "do not tell focal lengths" in result.verdict.reasons[0]


@pytest.mark.usefixtures("runaway")
def test_without_retry_a_model_with_cameras_that_cannot_be_is_doubted(tmp_path):
    settings = ReconstructionSettings(refine_keypoints=False, retry=False)
    result = reconstruct(**photographs(tmp_path, "straight ahead"), settings=settings)
    assert any("4 of 4 cameras cannot be" in line and "58.9 times" in line for line in result.verdict.reasons)


KNOWN = CameraSettings(params=(600, 320, 240, 0.02), mode="per_image")


def test_focal_lengths_that_leave_what_is_known_of_them_are_held(tmp_path):
    settings = ReconstructionSettings(refine_keypoints=False, camera=KNOWN)
    result = reconstruct(**photographs(tmp_path, "straight ahead"), settings=settings)
    assert {tuple(camera.params) for camera in result.model.cameras.values()} == {KNOWN.params}
    assert any("focal lengths are those of EXIF, or as given" in line for line in result.remarks)
    assert result.verdict.kind == "consistent"


def test_without_retry_a_focal_length_that_left_what_is_known_of_it_is_doubted(tmp_path):
    settings = ReconstructionSettings(refine_keypoints=False, retry=False, camera=KNOWN)
    result = reconstruct(**photographs(tmp_path, "straight ahead"), settings=settings)
    (line,) = result.verdict.reasons
    assert "focal lengths left what EXIF or camera.params say" in line
    off = max(result.model.cameras.values(), key=lambda camera: max(camera.params[0] / 600, 600 / camera.params[0]))
    assert f"went from 600 to {off.params[0]:.0f} px" in line


def test_a_model_whose_images_see_next_to_no_points_is_refused(tmp_path):
    arguments = photographs(tmp_path, "turned on the spot")
    with pytest.raises(ReconstructionError, match="seen from different places"):
        reconstruct(**arguments, settings=ReconstructionSettings(refine_keypoints=False))
    assert not arguments["output"].exists()


@pytest.fixture
def model():
    """Six images, each of its own camera, which nothing is known of."""
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_cameras_per_rig, options.num_frames_per_rig, options.num_points3D = 6, 1, 1, 100
    made = pycolmap.synthesize_dataset(options)
    for camera in made.cameras.values():
        camera.has_prior_focal_length = False
    return made


def doubts(model, **changes):
    summary = dataclasses.replace(summarize(model), reprojection_error=0.5, **changes)
    return judge(model, summary, {i: copy.copy(c) for i, c in model.cameras.items()}).reasons


def test_a_sane_model_has_no_doubts(model):
    assert doubts(model) == ()


def test_doubts_name_the_focal_length_and_the_distortion(model):
    before = {i: copy.copy(camera) for i, camera in model.cameras.items()}
    camera = model.camera(min(model.cameras))
    camera.params = [37.7 * max(camera.width, camera.height), *camera.params[1:3], -2208]
    (line,) = judge(model, dataclasses.replace(summarize(model), reprojection_error=0.5), before).reasons
    assert line.startswith("1 of 6 cameras cannot be")
    assert "37.7 times its larger side" in line
    assert "-2.21e+03" in line


def test_an_error_beyond_what_one_observation_may_have_is_a_doubt(model):
    (line,) = judge(model, dataclasses.replace(summarize(model), reprojection_error=67.0)).reasons
    assert "67.0 px" in line
    assert judge(model, dataclasses.replace(summarize(model), reprojection_error=MAX_ERROR)) == Verdict()


def test_known_intrinsics_are_no_reason_to_drop_an_image():
    tele = make_camera("SIMPLE_RADIAL", 1000, 800, (16700, 500, 400, 1.4))  # 600 mm
    low, high, extra = intrinsic_limits([tele])
    assert low == INTRINSIC_LIMITS[0]
    assert high > 16.7
    assert extra > 1.4
    assert intrinsic_limits([]) == INTRINSIC_LIMITS


def test_a_focal_length_shorter_than_any_straight_lens_is_a_doubt(model):
    before = {i: copy.copy(camera) for i, camera in model.cameras.items()}
    camera = model.camera(min(model.cameras))
    camera.params = [0.15 * max(camera.width, camera.height), *camera.params[1:]]  # 147 degrees across
    (line,) = judge(model, dataclasses.replace(summarize(model), reprojection_error=0.5), before).reasons
    assert "0.15 times its larger side" in line


def test_a_fisheye_lens_may_be_as_short():
    fisheye = make_camera("OPENCV_FISHEYE", 1000, 750, (200, 200, 500, 375, 0, 0, 0, 0))
    assert intrinsic_limits([fisheye])[0] == 0.1


def test_an_image_of_a_known_long_lens_stays(model):
    camera = model.camera(model.image(model.reg_image_ids()[2]).camera_id)
    camera.params = [16.7 * max(camera.width, camera.height), *camera.params[1:]]
    known = {i: copy.copy(other) for i, other in model.cameras.items()}
    known[camera.camera_id].has_prior_focal_length = True
    assert drop_bad_images(model, known) == 0
    assert drop_bad_images(model) == 1


@pytest.mark.parametrize("step", ["reconstruction", "triangulation"])
def test_hlocs_calls_say_doubts_too(tmp_path, caplog, monkeypatch, step):
    arguments = photographs(tmp_path, "straight ahead")
    module = {"reconstruction": reconstruction, "triangulation": triangulation}[step]
    monkeypatch.setattr(module, "judge", lambda *rest: Verdict("doubtful", ("it is upside down",)))
    rest = [arguments[key] for key in ("images", "pairs", "features", "matches")]
    if step == "triangulation":
        settings = ReconstructionSettings(refine_keypoints=False)
        model = reconstruct(**{**arguments, "output": tmp_path / "posed"}, settings=settings)
        assert model.verdict.kind == "consistent"
        rest.insert(0, tmp_path / "posed")
    module.main(tmp_path / "hloc", *rest)
    assert "doubtful: it is upside down" in caplog.text
    assert json.loads((tmp_path / "hloc" / "summary.json").read_text())["verdict"]["reasons"] == ["it is upside down"]
