"""Random maps from reference to query: exact, without folds, and of the strengths that were asked for."""

import math

import numpy as np
import pytest

from pdc_sfm.errors import SettingsError
from pdc_sfm.synthetic.warps import (
    KINDS,
    ImageFrame,
    Pose,
    ThinPlate,
    WarpSettings,
    in_pixels,
    jacobian,
    project,
    random_warp,
)

FRAME = ImageFrame(96, 128)


def only(kind: str, **changes) -> WarpSettings:
    return WarpSettings(**{name: float(name == kind) for name in KINDS}, **changes)


def warps(settings: WarpSettings, n: int = 60):
    rng = np.random.default_rng(0)
    return [random_warp(FRAME, settings, rng) for _ in range(n)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_warp_never_folds_and_its_images_overlap(kind):
    for warp, _ in warps(only(kind)):
        landed = warp(FRAME.grid()).astype(np.float64)
        right, down = np.diff(landed, axis=1)[:-1], np.diff(landed, axis=0)[:, :-1]
        assert (right[..., 0] * down[..., 1] - right[..., 1] * down[..., 0]).min() > 0
        assert FRAME.contains(landed).mean() > 0.05


def test_most_of_the_reference_is_seen_in_most_pairs():
    seen = [FRAME.contains(warp(FRAME.coarse_grid())).mean() for warp, _ in warps(WarpSettings(), 300)]
    assert np.mean(seen) > 0.6
    assert np.mean(np.array(seen) > 0.5) > 0.7


def test_half_turns_and_triple_zooms_occur_but_moderate_changes_prevail():
    poses = [pose for _, pose in warps(WarpSettings(), 600)]
    turned = np.abs([math.degrees(pose.rotation) for pose in poses])
    zoomed = np.exp(np.abs([pose.log_zoom for pose in poses]))
    assert turned.max() > 170
    assert zoomed.max() > 2.8
    assert turned.max() <= 180
    assert zoomed.max() <= 3 + 1e-9
    assert 0.1 < np.mean(turned > 45) < 0.35
    assert 0.06 < np.mean(zoomed > 2) < 0.3
    assert np.mean((turned <= 40) & (zoomed <= 2)) > 0.5


def test_turns_keep_to_their_limit_but_for_the_upended_ones():
    limited = WarpSettings(moderate=0, rotated=1, strong=0, max_rotation=60)
    turned = np.abs([math.degrees(pose.rotation) for _, pose in warps(limited, 200)])
    assert 50 < turned.max() <= 60
    upended = WarpSettings(moderate=0, rotated=0.8, strong=0, upended=0.2, max_rotation=60)
    turned = np.abs([math.degrees(pose.rotation) for _, pose in warps(upended, 400)])
    assert 0.07 < np.mean(turned > 60) < 0.2  # two thirds of a fifth
    assert turned.max() > 150


def test_the_zoom_and_rotation_of_a_pose_are_those_at_the_image_center():
    pose = Pose(rotation=math.radians(30), log_zoom=math.log(1.7), tilt=0.6, direction=1.1, focal=2.0)
    at_center = jacobian(lambda p: project(in_pixels(FRAME, pose.matrix()), p), np.array(FRAME.center, np.float32))
    assert np.linalg.det(at_center) == pytest.approx(1.7**2, rel=1e-3)
    flat = Pose(rotation=math.radians(30), log_zoom=math.log(1.7)).matrix()
    corner = flat @ [1, 0, 1]
    assert corner[:2] == pytest.approx([1.7 * math.cos(math.radians(30)), 1.7 * math.sin(math.radians(30))])


def test_a_tilted_plane_is_foreshortened_as_a_camera_would_see_it():
    tilt, focal = 0.5, 2.0
    # camera at distance `focal`, the plane turned about the x axis: (x, y) lies at depth focal + y sin(tilt)
    matrix = Pose(tilt=tilt, focal=focal).matrix()
    point = matrix @ [0.3, 0.4, 1]
    depth = focal + 0.4 * math.sin(tilt)
    seen = np.array([0.3 * focal / depth, 0.4 * math.cos(tilt) * focal / depth])
    assert point[:2] / point[2] * math.sqrt(math.cos(tilt)) == pytest.approx(seen)


def test_no_share_of_a_pose_is_the_identity_and_an_inverse_tilt_undoes_a_tilt():
    pose = Pose(1.0, 0.4, 0.5, 0.7, 2.0, (0.1, -0.2))
    assert pose.matrix(0.0) == pytest.approx(np.eye(3))
    there, back = Pose(tilt=0.5, direction=0.7, focal=2.0), Pose(tilt=-0.5, direction=0.7, focal=2.0)
    assert there.matrix() @ back.matrix() == pytest.approx(np.eye(3))


def test_a_homography_is_the_quotient_of_its_rows():
    matrix = np.array([[1.1, 0.2, -3], [-0.1, 0.9, 5], [1e-3, -5e-4, 1]])
    x, y = 37.25, 61.5
    top, middle, bottom = matrix @ [x, y, 1]
    landed = project(matrix, np.array([[x, y]], np.float32))[0]
    assert landed == pytest.approx([top / bottom, middle / bottom], abs=1e-4)


def test_a_spline_passes_through_its_control_points_and_keeps_affine_maps():
    controls = np.array([[-1, -1], [0, -1], [1, -1], [-1, 1], [0, 0.3], [1, 1]], float)
    moves = np.random.default_rng(0).normal(0, 0.1, controls.shape)
    pixels = (controls * FRAME.radius + FRAME.center).astype(np.float32)
    landed = ThinPlate(FRAME, controls, moves)(pixels)
    assert landed == pytest.approx(pixels + FRAME.radius * moves, abs=1e-3)
    affine = controls @ np.array([[0.1, 0.05], [-0.02, 0.2]])
    anywhere = np.array([[11.5, 80.25], [100.0, 3.0]], np.float32)
    moved = ThinPlate(FRAME, controls, affine)(anywhere) - anywhere
    assert moved == pytest.approx((anywhere - FRAME.center) @ np.array([[0.1, 0.05], [-0.02, 0.2]]), abs=1e-3)


@pytest.mark.parametrize(
    "wrong", [{"max_zoom": 0.5}, {"max_rotation": 200}, {"moderate": -1}, {"upended": -1}, {"max_tilt": 90}]
)
def test_settings_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        WarpSettings(**wrong)
