"""Known cameras and matches become points: all of them, in the right place, and nothing half-written."""

import h5py
import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs

from pdc_sfm.colmap.io.models import ReconstructionError, load_model, model_poses
from pdc_sfm.colmap.io.pointcloud import read_ply
from pdc_sfm.colmap.mapping import triangulation
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.errors import BusyError, FormatError, ImageError
from pdc_sfm.files import exclusive

NAMES = [f"db/{i}.png" for i in range(6)]


@pytest.fixture
def inputs(tmp_path):
    """A scene on disk: `inputs.scene` and the arguments of `triangulate`."""
    scene = make_scene(NAMES)
    arguments = dict(
        reference=write_model(scene, tmp_path / "reference"),
        images=write_images(scene, tmp_path / "images"),
        pairs=write_pairs(tmp_path / "pairs.txt", scene.pairs()),
        features=write_features(scene, tmp_path / "features.h5"),
        matches=write_matches(scene, tmp_path / "matches.h5", scene.pairs()),
        output=tmp_path / "sfm",
    )
    return scene, arguments


def truth(scene, model):
    """Distance of every point of the model to the true point that its first observation shows."""
    distances = []
    for point in model.points3D.values():
        element = point.track.elements[0]
        name = model.image(element.image_id).name
        distances.append(np.linalg.norm(point.xyz - scene.points[scene.visible[name][element.point2D_idx]]))
    return np.array(distances)


def test_exact_matches_give_the_true_points_and_keep_the_poses(inputs):
    scene, arguments = inputs
    result = triangulate(
        **arguments, settings=TriangulationSettings(refine_keypoints=False)
    )  # the images do not show the scene
    seen = sum(sum(i in set(v) for v in scene.visible.values()) >= 3 for i in range(len(scene.points)))
    assert result.summary.points >= 0.95 * seen
    assert truth(scene, result.model).max() < 1e-3  # the half-pixel shift alone would cost 5e-3
    assert result.summary.reprojection_error < 1e-3
    assert result.left_out == ()
    for name, pose in model_poses(load_model(arguments["output"])).items():
        np.testing.assert_allclose(pose, scene.poses[name], atol=1e-9)


def test_images_that_are_not_there_are_named_before_the_work(inputs):
    _, arguments = inputs
    (arguments["images"] / NAMES[2]).unlink()
    with pytest.raises(ImageError, match=rf"1 images are not in .*first: {NAMES[2]}.*refine_keypoints=false"):
        triangulate(**arguments)
    assert not arguments["output"].exists()
    assert triangulate(**arguments, settings=TriangulationSettings(refine_keypoints=False)).summary.points > 0


def test_output_holds_model_database_cloud_and_summary(inputs):
    _, arguments = inputs
    result = triangulate(**arguments, settings=TriangulationSettings(keep_outliers=True))
    files = {p.name for p in arguments["output"].iterdir()}
    assert files == {"cameras.bin", "images.bin", "points3D.bin", "rigs.bin", "frames.bin", "database.db", "points.ply",
                     "summary.json", "frame.json"}  # fmt: skip
    points, colors = read_ply(arguments["output"] / "points.ply")
    assert len(points) == result.summary.points
    red, blue = colors[:, 0] > 150, colors[:, 2] > 150
    assert (red | blue).mean() > 0.5  # a point may be seen on both halves, then it is a mixture
    assert red.any()
    assert blue.any()


@pytest.mark.parametrize("geometry", ["known", "estimated"])
def test_wrong_matches_are_removed(inputs, geometry):
    scene, arguments = inputs
    write_matches(scene, arguments["matches"], scene.pairs(), wrong=0.3)
    result = triangulate(**arguments, settings=TriangulationSettings(geometry=geometry))
    assert result.summary.points > 100
    assert np.quantile(truth(scene, result.model), 0.9) < 1e-2


def test_min_score_drops_the_weak_matches_before_they_do_harm(inputs):
    scene, arguments = inputs
    write_matches(scene, arguments["matches"], scene.pairs(), wrong=0.3)  # wrong ones score 0.4, the others 0.8
    settings = TriangulationSettings(geometry="none", min_score=0.6, refine_keypoints=False)
    assert truth(scene, triangulate(**arguments, settings=settings).model).max() < 1e-3


def test_a_keypoint_is_allowed_its_own_uncertainty(inputs):
    scene, arguments = inputs
    rng = np.random.default_rng(0)
    for name in scene.names:  # three quarters of the keypoints are 6 px off: beyond 4 px, within 4 x 2.5 px
        scene.keypoints[name][::4] += rng.choice([-6, 6], (len(scene.keypoints[name][::4]), 2))
    counts = []
    for uncertainty in (None, 2.5):
        write_features(scene, arguments["features"], uncertainty=uncertainty)
        triangulate(**arguments)
        with pycolmap.Database.open(arguments["output"] / "database.db") as database:
            counts.append(database.num_inlier_matches())
    assert counts[1] > 1.2 * counts[0]


def test_reversed_and_repeated_pairs_are_the_same_pairs(inputs):
    scene, arguments = inputs
    settings = TriangulationSettings(threads=1)  # sums of threads vary
    first = triangulate(**arguments, settings=settings).summary
    write_pairs(arguments["pairs"], [(b, a) for a, b in scene.pairs()] + scene.pairs())
    again = triangulate(**arguments, settings=settings).summary
    assert (again.registered, again.points, again.mean_track_length) == (
        first.registered,
        first.points,
        first.mean_track_length,
    )


def test_hloc_signature_returns_the_model(inputs):
    _, arguments = inputs
    model = triangulation.main(
        arguments["output"], arguments["reference"], arguments["images"], arguments["pairs"], arguments["features"],
        arguments["matches"], mapper_options={"min_num_matches": 20},
    )  # fmt: skip
    assert isinstance(model, pycolmap.Reconstruction)
    assert model.num_points3D() > 100


def test_images_that_the_model_does_not_know_are_named_and_the_rest_is_done(inputs):
    scene, arguments = inputs
    write_model(scene, arguments["reference"], NAMES[:-1])
    result = triangulate(**arguments)
    assert result.summary.points > 100
    assert len(result.left_out) == 1
    assert "1 image in" in result.left_out[0]
    assert "not in the model (first: db/5.png)" in result.left_out[0]


def test_images_without_keypoints_and_pairs_without_matches_are_named(inputs):
    scene, arguments = inputs
    write_features(scene, arguments["features"], NAMES[:-1])
    write_matches(scene, arguments["matches"], scene.pairs()[1:])
    result = triangulate(**arguments)
    assert "without keypoints (first: db/5.png)" in result.left_out[0]
    assert "1 pair of" in result.left_out[1]


def test_features_of_other_images_are_refused(inputs):
    scene, arguments = inputs
    write_features(make_scene([f"x{i}" for i in range(6)]), arguments["features"])
    with pytest.raises(FormatError, match=r"no pair of .* can be used.*belong together"):
        triangulate(**arguments)
    write_features(scene, arguments["features"])
    with h5py.File(arguments["features"], "r+") as file:
        file["db/2.png/image_size"][...] = (320, 240)
    with pytest.raises(FormatError, match=r"db/2\.png is 640 x 480 .* 320 x 240: model and features"):
        triangulate(**arguments)
    assert not arguments["output"].exists()


def test_matches_of_other_features_are_refused(inputs):
    _, arguments = inputs
    with h5py.File(arguments["features"], "r+") as file:
        keypoints = file["db/3.png/keypoints"][:20]
        del file["db/3.png/keypoints"]
        file["db/3.png/keypoints"] = keypoints
    with pytest.raises(FormatError, match=r"db/3\.png, which has 20: features and matches"):
        triangulate(**arguments)


@pytest.mark.parametrize("geometry", ["known", "estimated", "none"])
def test_a_model_without_points_is_an_error_and_the_old_result_stays(inputs, geometry):
    scene, arguments = inputs
    triangulate(**arguments)
    before = (arguments["output"] / "points3D.bin").read_bytes()
    scene.poses = dict.fromkeys(NAMES, scene.poses[NAMES[0]])  # all cameras in one place
    write_model(scene, arguments["reference"])
    with pytest.raises(ReconstructionError, match="no point"):
        triangulate(**arguments, settings=TriangulationSettings(geometry=geometry))
    assert (arguments["output"] / "points3D.bin").read_bytes() == before


def test_no_match_that_agrees_with_the_poses_is_an_error(inputs):
    scene, arguments = inputs
    rng = np.random.default_rng(0)
    for name in scene.names:
        scene.keypoints[name] = rng.uniform(0, 480, scene.keypoints[name].shape).astype(np.float32)
    write_features(scene, arguments["features"], uncertainty=1e-3)
    with pytest.raises(ReconstructionError, match="no match of 15 pairs agrees with the geometry"):
        triangulate(**arguments)


def test_two_runs_at_once_are_not_mixed(inputs):
    _, arguments = inputs
    with exclusive(arguments["output"]), pytest.raises(BusyError):
        triangulate(**arguments)
