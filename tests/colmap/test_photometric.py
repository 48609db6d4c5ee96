"""Observations moved by what the images show, on a textured wall seen by known cameras."""

import cv2
import numpy as np
import pycolmap
import pytest

from pdc_sfm.colmap.io.cameras import make_camera
from pdc_sfm.colmap.io.models import model_poses
from pdc_sfm.colmap.refinement import photometric
from pdc_sfm.colmap.refinement.patches import align_patches, sample
from pdc_sfm.colmap.refinement.photometric import refine_keypoints
from pdc_sfm.errors import ImageError
from pdc_sfm.evaluation.measures.poses import reconstruction_errors

SIZE, FOCAL = (320, 240), 300.0
PIXELS = 40  # of the wall's texture in a metre


def texture(seed=0):
    random = np.random.default_rng(seed)
    noise = sum(
        cv2.resize(random.normal(size=(n, n)), (480, 480), interpolation=cv2.INTER_CUBIC) for n in (30, 60, 120)
    )
    return np.clip(128 + 40 * noise, 0, 255).astype(np.float32)


def pose(x, turn):
    rotation = cv2.Rodrigues(np.array([0.02 * x, turn, 0.03 * x]))[0]
    return np.c_[rotation, -rotation @ [x, 0.5 * np.cos(3 * x), 0.0]]


def photograph(cam_from_world, wall, gain=1.0, offset=0.0):
    """The plane z = 8 (12 m wide, about the axis) through a pinhole camera, by a homography."""
    plane = np.array([[1 / PIXELS, 0, -6], [0, 1 / PIXELS, -6], [0, 0, 8]])  # texture (corner at 0) -> world
    camera = np.array([[FOCAL, 0, SIZE[0] / 2], [0, FOCAL, SIZE[1] / 2], [0, 0, 1]])
    homography = camera @ (cam_from_world[:, :3] @ plane + np.outer(cam_from_world[:, 3], [0, 0, 1]))
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])  # pixel indices -> corner at 0
    gray = cv2.warpPerspective(wall, np.linalg.inv(half) @ homography @ half, SIZE, flags=cv2.INTER_CUBIC)
    return np.repeat((gain * gray + offset).clip(0, 255).astype(np.uint8)[..., None], 3, 2)


def scene(folder, wall, error):
    """A model of the wall whose observations are wrong by error(points (N, 2) on the wall, image number)."""
    random = np.random.default_rng(1)
    on_wall = random.uniform(-2.5, 2.5, (600, 2)) * (1, 0.8)
    xyz = np.c_[on_wall, np.full(len(on_wall), 8.0)]
    poses = {f"{k}.png": pose(x, 0.1 * x) for k, x in enumerate((-2.0, -1.0, 0.0, 1.0, 2.0))}
    model = pycolmap.Reconstruction()
    camera = make_camera("SIMPLE_PINHOLE", *SIZE, [FOCAL, SIZE[0] / 2, SIZE[1] / 2])
    camera.camera_id = 1
    model.add_camera_with_trivial_rig(camera)
    seen_by = [[] for _ in xyz]
    for number, (name, cam_from_world) in enumerate(poses.items(), 1):
        cv2.imwrite(str(folder / name), photograph(cam_from_world, wall, 1 - 0.1 * number, 5 * number))
        local = xyz @ cam_from_world[:, :3].T + cam_from_world[:, 3]
        places = FOCAL * local[:, :2] / local[:, 2:] + np.divide(SIZE, 2)
        inside = ((places > 8) & (places < np.subtract(SIZE, 8))).all(1)
        wrong = places[inside] + error(on_wall[inside], number)
        image = pycolmap.Image(name=name, camera_id=1, image_id=number, keypoints=wrong)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(cam_from_world))
        for index, point in enumerate(np.flatnonzero(inside)):
            seen_by[point].append((number, index))
    for point, views in zip(xyz, seen_by):
        if len(views) > 1:
            track = pycolmap.Track(elements=[pycolmap.TrackElement(*view) for view in views])
            model.add_point3D(point, track, np.zeros(3, np.uint8))
    model.update_point_3d_errors()
    return model, poses


def smooth_error(points, number):
    """Shared by neighbors, other in every image, about 0.7 pixels: what bundle adjustment cannot average away."""
    return 0.8 * np.stack([np.sin(points[:, 0] + number), np.cos(1.3 * points[:, 0] + 2 * number)], 1)


def options(threads=1):
    chosen = pycolmap.BundleAdjustmentOptions(refine_focal_length=False, refine_extra_params=False)
    chosen.ceres.solver_options.num_threads = threads
    return chosen


def adjusted(model):
    config = pycolmap.BundleAdjustmentConfig()
    for image_id in model.reg_image_ids():
        config.add_image(image_id)
    config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    chosen = options()
    chosen.print_summary = False
    pycolmap.create_default_bundle_adjuster(chosen, config, model).solve()
    return model


def test_cameras_become_several_times_more_exact(tmp_path):
    model, poses = scene(tmp_path, texture(), smooth_error)
    before = reconstruction_errors(model_poses(adjusted(pycolmap.Reconstruction(model))), poses)
    done = refine_keypoints(model, tmp_path, options())
    after = reconstruction_errors(model_poses(model), poses)
    assert done.moved > 0.5 * done.observations
    assert 0.3 < done.median_move < 2
    for errors in ("degrees", "distances"):
        assert np.median(getattr(after, errors)) < np.median(getattr(before, errors)) / 5
    assert model.compute_mean_reprojection_error() < 0.15


def test_threads_move_the_same_observations_to_the_same_places(tmp_path, monkeypatch):
    model, _ = scene(tmp_path, texture(), smooth_error)
    monkeypatch.setattr("pdc_sfm.colmap.refinement.photometric._adjust_by", lambda *_: None)  # Ceres sums in any order
    places = []
    for threads in (1, 3):
        moved = pycolmap.Reconstruction(model)
        refine_keypoints(moved, tmp_path, options(threads), rounds=1)
        places.append(np.array([p.xy for i in moved.reg_image_ids() for p in moved.image(i).points2D]))
    np.testing.assert_array_equal(*places)


def test_an_image_that_is_gone_is_said_whatever_thread_reads_it(tmp_path):
    model, _ = scene(tmp_path, texture(), smooth_error)
    (tmp_path / model.image(2).name).unlink()
    with pytest.raises(ImageError, match=model.image(2).name):
        refine_keypoints(model, tmp_path, options(2))


def test_without_texture_nothing_moves(tmp_path):
    model, _ = scene(tmp_path, np.full((480, 480), 90, np.float32), smooth_error)
    before = {i: model.image(i).cam_from_world().matrix() for i in model.reg_image_ids()}
    assert refine_keypoints(model, tmp_path, options()).moved == 0
    for image_id, matrix in before.items():
        np.testing.assert_array_equal(model.image(image_id).cam_from_world().matrix(), matrix)


def test_a_point_behind_a_camera_is_left_out(tmp_path):
    model, poses = scene(tmp_path, texture(), smooth_error)
    for point in list(model.points3D.values())[:20]:
        point.xyz = -point.xyz
    done = refine_keypoints(model, tmp_path, options())
    after = reconstruction_errors(model_poses(model), poses)
    assert done.moved > 0.5 * done.observations
    assert np.median(after.degrees) < 0.05


def test_known_poses_stay(tmp_path):
    model, poses = scene(tmp_path, texture(), smooth_error)
    fixed = options()
    fixed.refine_rig_from_world = False
    refine_keypoints(model, tmp_path, fixed)
    for name, matrix in model_poses(model).items():
        np.testing.assert_allclose(matrix, poses[name], atol=1e-9)
    depths = np.array([point.xyz[2] for point in model.points3D.values()])
    assert np.median(np.abs(depths - 8)) < 0.01


@pytest.mark.parametrize("angle", [0, 20])
def test_a_patch_is_found_to_a_hundredth_of_its_contrast_in_another_light(angle):
    image = cv2.GaussianBlur(texture(3), (0, 0), 1.0)
    turn = cv2.getRotationMatrix2D((240, 240), angle, 1.0)
    other = 0.7 * cv2.warpAffine(image, turn, (480, 480), flags=cv2.INTER_CUBIC) + 20
    random = np.random.default_rng(0)
    places = random.uniform(140, 340, (200, 2))  # COLMAP coordinates
    there = (places - 0.5) @ turn[:, :2].T + turn[:, 2] + 0.5
    steps = np.repeat(np.eye(2)[None], 200, 0)
    templates = sample(image, places, steps)
    found, alike = align_patches(
        other, there + random.uniform(-1, 1, (200, 2)), steps @ turn[:, :2].T, templates, sigma=2.0
    )
    assert np.median(np.linalg.norm(found - there, axis=1)) < 0.05
    assert np.median(alike) > 0.98


def test_along_an_edge_the_place_stays():
    image = np.zeros((60, 60), np.float32)
    image[:, 30:] = 100
    image = cv2.GaussianBlur(image, (0, 0), 1.0)
    steps = np.eye(2)[None]
    template = sample(image, np.array([[30.0, 30.0]]), steps)
    found, _ = align_patches(image, np.array([[31.0, 33.0]]), steps, template)
    np.testing.assert_allclose(found, [[30.0, 33.0]], atol=0.1)


def test_an_adjustment_that_runs_away_is_taken_back(tmp_path, monkeypatch):
    model, _ = scene(tmp_path, texture(), smooth_error)
    before = pycolmap.Reconstruction(model)

    def run_away(model, options):
        """What bundle adjustment does where little holds the cameras, here to one of them."""
        frame = model.frame(model.reg_frame_ids()[0])
        moved = frame.rig_from_world.translation + np.array([0.0, 9.0, 0.0])
        frame.rig_from_world = pycolmap.Rigid3d(frame.rig_from_world.rotation, moved)
        for point in model.points3D.values():
            point.xyz = point.xyz + np.array([0.0, 4.0, 0.0])
        model.update_point_3d_errors()

    monkeypatch.setattr(photometric, "_adjust_sanely", run_away)
    monkeypatch.setattr(photometric, "adjust", lambda model, options: model.update_point_3d_errors())
    assert refine_keypoints(model, tmp_path, options()).moved == 0
    for name, cam_from_world in model_poses(before).items():
        np.testing.assert_array_equal(model_poses(model)[name], cam_from_world)
    assert model.num_points3D() == before.num_points3D()
    assert model.compute_mean_reprojection_error() == pytest.approx(before.compute_mean_reprojection_error())
