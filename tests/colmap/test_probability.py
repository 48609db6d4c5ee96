"""How likely the pose of a query is right, and whether its covariance is true."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pycolmap
import pytest

from pdc_sfm.colmap.io.models import has_metres
from pdc_sfm.colmap.localization.evidence import pose_evidence
from pdc_sfm.colmap.localization.pose_refinement import pose_covariance, refine_pose
from pdc_sfm.colmap.localization.probability import DEGREES, METRES, pose_probability
from pdc_sfm.colmap.localization.query import PoseSettings, Query, localize_query

FOCAL, WIDTH, HEIGHT = 500.0, 640, 480
CAMERA = pycolmap.Camera(model="PINHOLE", width=WIDTH, height=HEIGHT, params=[FOCAL, FOCAL, WIDTH / 2, HEIGHT / 2])


def view(place, low, high, count, rng, depth=(12, 20), noise=0.0):
    """Keypoints between two corners of the image, and the points that a camera at a place sees there."""
    keypoints = rng.uniform(low, high, (count, 2))
    rays = np.c_[(keypoints - (WIDTH / 2, HEIGHT / 2)) / FOCAL, np.ones(count)]
    return keypoints + rng.normal(0, noise, keypoints.shape), place + rng.uniform(*depth, (count, 1)) * rays


def judged(keypoints, points, images, centers=None, tolerance=METRES, **more):
    """The judged pose of a query of which every database image sees all points."""
    every = np.arange(len(points))
    centers = np.zeros((images, 3)) if centers is None else centers
    poses = {k + 1: pycolmap.Rigid3d(pycolmap.Rotation3d(), -center) for k, center in enumerate(centers)}
    model = SimpleNamespace(image=lambda k: SimpleNamespace(cam_from_world=lambda: poses[k]))
    lookup = SimpleNamespace(xyz=lambda ids: points[ids], point_ids=lambda _: every, model=model)
    found = [(k + 1, np.c_[every, every], np.full(len(points), 0.7)) for k in range(images)]
    item = localize_query(Query("query.jpg", CAMERA, keypoints, found), lookup, PoseSettings())
    return pose_probability(pose_evidence(item, lookup, tolerance, DEGREES, **more))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_pose_that_covers_the_picture_and_that_many_images_vouch_for_is_hardly_doubted(rng):
    sure = judged(*view(np.zeros(3), (10, 10), (630, 470), 3000, rng, noise=0.5), images=6)
    assert sure.probability > 0.9
    assert sure.doubt(0.5) == ""
    assert sure.evidence.covered > 0.8
    assert sure.evidence.images == 6


def test_one_small_spot_leaves_the_position_open_and_says_so(rng):
    spot = judged(*view(np.zeros(3), (300, 200), (340, 230), 3000, rng, (14, 15), noise=0.5), images=6)
    assert spot.precision < 0.2
    assert "cover" in spot.doubt(0.5)
    assert "match more images" in spot.doubt(0.5)


def test_fewer_images_and_matches_that_tell_of_another_place_make_a_pose_less_likely(rng):
    here = view(np.zeros(3), (10, 10), (630, 470), 2000, rng, noise=0.5)
    elsewhere = view(np.array([40.0, 3, 7]), (10, 10), (630, 470), 1800, rng, noise=0.5)
    both = tuple(np.concatenate(parts) for parts in zip(here, elsewhere))
    many, one, torn = judged(*here, images=6), judged(*here, images=1), judged(*both, images=6)
    assert many.place > one.place
    assert many.place > torn.place
    assert torn.evidence.unexplained > 0.4 > many.evidence.unexplained
    assert "only 1 image of the map vouches" in dataclasses.replace(one, place=0.1).doubt(0.5)


def test_a_guessed_focal_length_moves_the_camera_along_its_axis(rng):
    """At a depth of d, a focal length that is wrong by a share s moves a camera by s d: Z = f X / x."""
    depth, share = 15.0, 0.03
    wall = view(np.zeros(3), (10, 10), (630, 470), 2000, rng, (depth, depth + 1e-3), noise=0.1)
    known, said = judged(*wall, images=6), judged(*wall, images=6, focal_sigma=share)
    assert said.evidence.sigma_position == pytest.approx(share * depth, rel=0.2)
    assert known.evidence.sigma_position < 0.1 * said.evidence.sigma_position
    assert said.probability < known.probability
    assert "focal length" in said.doubt(1.0)


def test_the_angle_is_that_between_the_rays(rng):
    keypoints, points = view(np.zeros(3), (300, 220), (340, 260), 500, rng, (10, 10.01))
    aside = np.array([[10 * np.tan(np.radians(50)), 0, 0]])
    assert judged(keypoints, points, 1, aside).evidence.angle == pytest.approx(50, abs=2)


def test_without_metres_a_right_pose_is_one_of_the_same_share_of_the_depth(rng):
    """A map in another unit is the same map."""
    keypoints, points = view(np.zeros(3), (10, 10), (630, 470), 500, rng, noise=1.0)
    small, large = (judged(keypoints, scale * points, 3, tolerance=None) for scale in (0.01, 100.0))
    assert small.probability == pytest.approx(large.probability, abs=1e-3)
    assert large.evidence.tolerance == pytest.approx(100 * np.median(points[:, 2]) / 60, rel=0.05)


def test_maps_of_matches_alone_have_no_metres(tmp_path):
    for name, settings in (("known", {"geometry": "known"}), ("found", {"mapper": "incremental"})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps({"settings": settings}))
    assert has_metres(tmp_path / "known")
    assert not has_metres(tmp_path / "found")
    assert has_metres(tmp_path)  # another program's model: nothing says otherwise


def test_the_covariance_is_true_where_neighbors_err_together(rng):
    """Squared errors in units of the covariance have a mean of 6, the number of unknowns. As if matches erred alone, far more."""
    squares, each, trials = 100, 40, 60
    whole, alone = [], []
    pose = pycolmap.Rigid3d()
    for _ in range(trials):
        group = np.repeat(np.arange(squares), each)
        middle = rng.uniform((20, 20), (620, 460), (squares, 2))[group]
        keypoints = middle + rng.uniform(-15, 15, middle.shape)
        rays = (keypoints - (WIDTH / 2, HEIGHT / 2)) / FOCAL
        points = np.c_[rays, np.ones(len(rays))] * rng.uniform(8, 20, (len(rays), 1))
        shared = rng.normal(0, 0.3, (squares, 2))[group] + rng.normal(0, 0.1, rays.shape)
        given = (rays + shared / FOCAL, points, np.ones(len(rays)), FOCAL, 5.0)
        found = refine_pose(pose, *given)
        turn = found.rotation.matrix()
        error = np.r_[(turn - turn.T)[[2, 0, 1], [1, 2, 0]] / 2, found.translation]
        for groups, to in ((group, whole), (np.arange(len(rays)), alone)):
            to.append(error @ np.linalg.solve(pose_covariance(found, *given, groups), error))
    assert 4 < np.mean(whole) < 10
    assert np.mean(alone) > 60
