"""Flow between two pictures follows from depth and cameras alone."""

import numpy as np
import pytest

from pdc_sfm.scenes import Camera, Conditions, Rendering, flow_between, flow_from_depth, render_image
from pdc_sfm.scenes.town.ground_plan import KERB

LEFT = Camera.looking(np.array([-12.0, -9.0, 1.7]), np.array([4.0, 12.0, 4.0]), (160, 120), 130)
RIGHT = Camera.looking(np.array([-9.0, -10.4, 1.6]), np.array([4.0, 12.0, 4.5]), (128, 112), 150, roll=0.05)


@pytest.fixture(scope="module")
def pair(town):
    quiet = Conditions(noise=0.0, metering=0.0)
    return render_image(town, LEFT, quiet), render_image(town, RIGHT, quiet)


def test_on_the_ground_it_is_the_homography_of_the_plane(pair):
    left, right = pair
    flow, _ = flow_between(left, right)
    points = LEFT.lift(LEFT.pixel_grid(), left.depth)
    ground = (left.depth > 0) & (np.abs(points[..., 2] - KERB) < 1e-4) & (np.abs(points[..., 0]) < 11)
    assert ground.mean() > 0.1

    def from_plane(camera):  # (x, y, 1) on the plane z = KERB -> COLMAP pixel
        pose = camera.cam_from_world
        return camera.matrix @ np.stack([pose[:, 0], pose[:, 1], pose[:, 2] * KERB + pose[:, 3]], 1)

    homography = from_plane(RIGHT) @ np.linalg.inv(from_plane(LEFT))
    start = np.concatenate([LEFT.pixel_grid() + 0.5, np.ones((120, 160, 1))], -1)
    end = start @ homography.T
    expected = end[..., :2] / end[..., 2:] - start[..., :2]
    np.testing.assert_allclose(flow[ground], expected[ground], atol=2e-3, rtol=1e-4)


def test_there_and_back_again(pair):
    """Of a pixel seen in both pictures, the way there and the way back cancel, on surfaces that both sample well."""
    left, right = pair
    there, seen = flow_between(left, right)
    back, _ = flow_between(right, left)
    rows, columns = np.nonzero(seen)
    landed = np.stack([columns, rows], 1) + there[rows, columns]
    nearest = np.rint(landed).astype(int)
    # the landing point between pixels is brought to the nearest pixel, whose own way back starts there
    returned = nearest + back[nearest[:, 1], nearest[:, 0]]
    off = np.linalg.norm(returned - np.stack([columns, rows], 1), axis=1)
    assert seen.mean() > 0.2
    assert np.median(off) < 1
    assert (off < 3).mean() > 0.93


def test_what_something_hides_is_not_visible():
    """A board at 2 m before a wall at 10 m, seen from two places 1 m apart: the band it hides is known."""
    first = Camera(100, 60, 50.0, np.eye(4)[:3])
    second = Camera(100, 60, 50.0, np.concatenate([np.eye(3), [[-1.0], [0], [0]]], 1))
    first_depth = np.full((60, 100), 10.0, np.float32)
    second_depth = first_depth.copy()
    second_depth[:, 10:30] = 2.0  # in the second picture, pixels 10 .. 29
    flow, visible = flow_from_depth(first, first_depth, second, second_depth)
    np.testing.assert_allclose(flow[..., 0], -5.0)  # 50 px / 10 m
    np.testing.assert_allclose(flow[..., 1], 0.0, atol=1e-6)
    expected = np.ones((60, 100), bool)
    expected[:, :5] = False  # leaves the picture
    expected[:, 15:35] = False  # lands on the board
    np.testing.assert_array_equal(visible, expected)


def test_a_window_recess_is_told_from_the_wall():
    """15 cm of relief at 15 m, the least that matters, decides visibility."""
    camera = Camera(40, 30, 50.0, np.eye(4)[:3])
    wall, recess = np.full((30, 40), 15.0, np.float32), np.full((30, 40), 15.15, np.float32)
    assert flow_from_depth(camera, wall, camera, wall)[1].all()
    assert not flow_from_depth(camera, wall, camera, recess)[1].any()


def test_the_sky_has_no_flow_and_what_moves_is_never_visible(pair):
    left, right = pair
    flow, visible = flow_between(left, right)
    sky = left.depth == 0
    assert sky.any()
    assert not visible[sky].any()
    assert (flow[sky] == 0).all()
    crowd = Rendering(right.image, right.depth, np.ones_like(right.moving), RIGHT)
    assert not flow_between(left, crowd)[1].any()
    assert not flow_between(crowd, left)[1].any()
