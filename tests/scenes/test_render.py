"""Pictures show the town that the geometry describes: exact depth, the same colors from everywhere, no holes."""

from dataclasses import replace

import numpy as np
import pytest

from pdc_sfm.scenes import Camera, Conditions, Town, flow_between, plan_shots, render_image
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.sampling import sample_view

STILL = Conditions(noise=0.0, vignette=0.0, metering=0.0)  # what the lens and the sensor add is left out
ACROSS = Camera.looking(np.array([-12.0, -9.0, 1.7]), np.array([4.0, 12.0, 4.0]), (160, 120), 130)
BESIDE = Camera.looking(np.array([-10.6, -9.6, 1.7]), np.array([4.0, 12.0, 4.0]), (160, 120), 130)


def cast(scene: Town, origin: np.ndarray, ray: np.ndarray) -> float:
    """Distance to the first quad a ray meets, by intersecting all of them."""
    mesh = scene.mesh
    front = mesh.two_sided | (mesh.normal @ ray < 0)
    normal, corners = mesh.normal[front], mesh.corners[front]
    along = normal @ ray
    distance = np.einsum("ni,ni->n", normal, corners[:, 0] - origin) / np.where(along == 0, 1e-12, along)
    hit = origin + distance[:, None] * ray
    turn = np.einsum(
        "nej,nej->ne", np.cross(normal[:, None], np.roll(corners, -1, 1) - corners), hit[:, None] - corners
    )
    inside = (turn > -1e-9).all(1) & (distance > 0.05)
    return float(distance[inside].min(initial=np.inf))


@pytest.fixture(scope="module")
def across(town):
    return render_image(town, ACROSS, STILL)


def test_depth_is_that_of_the_first_surface_on_the_ray(town, across):
    random = np.random.default_rng(0)
    pixels = np.stack([random.integers(160, size=40), random.integers(120, size=40)], 1)
    rays = ACROSS.lift(pixels, np.ones(40)) - ACROSS.center
    expected = np.array([cast(town, ACROSS.center, ray) for ray in rays])
    found = across.depth[pixels[:, 1], pixels[:, 0]].astype(float)
    found[found == 0] = np.inf
    exact = np.abs(found / np.where(np.isinf(expected), 1, expected) - 1) < 1e-6
    assert (exact | (np.isinf(found) & np.isinf(expected))).sum() >= 39  # one may fall within float32 of an edge


def test_no_ray_below_the_horizon_leaves_the_town(town, settings):
    """Walls, roofs and ground have no holes: whoever looks down sees ground or something standing on it."""
    for shot in plan_shots(settings, town.taken):
        camera = shot.camera
        rays = camera.lift(camera.pixel_grid(), np.ones((camera.height, camera.width))) - camera.center
        assert np.isfinite(sample_view(town.mesh, camera).center_depth[rays[..., 2] < 0]).all()


def test_a_surface_has_the_same_color_from_two_places(town, across):
    beside = render_image(town, BESIDE, STILL)
    flow, visible = flow_between(across, beside)
    inner = visible & ~_edges(across.depth)
    difference = _compare(across.image, beside.image, flow, inner)
    assert inner.mean() > 0.12
    assert np.median(difference) < 5  # gray levels; pixels average over other footprints, so they cannot agree wholly
    assert np.quantile(difference, 0.9) < 30
    wrong = _compare(across.image, beside.image, flow + np.float32(6), inner)  # the measure tells a shift of 6 pixels
    assert np.median(wrong) > 4 * np.median(difference)


def _compare(image: np.ndarray, other: np.ndarray, flow: np.ndarray, where: np.ndarray) -> np.ndarray:
    import cv2

    at = ACROSS.pixel_grid().astype(np.float32) + flow
    warped = cv2.remap(other, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.abs(warped.astype(float) - image)[where].mean(1)


def _edges(depth: np.ndarray) -> np.ndarray:
    """Pixels with a jump of depth, or the sky, next to them."""
    import cv2

    inverse = np.where(depth > 0, 1 / np.maximum(depth, 1e-3), 0).astype(np.float32)
    spread = cv2.dilate(inverse, np.ones((3, 3))) - cv2.erode(inverse, np.ones((3, 3)))
    return (spread > 0.03 * inverse) | (cv2.erode(depth, np.ones((3, 3))) == 0)


def test_pixels_hold_averages(town, across):
    """Anti-aliasing: a picture of half the size is nearer to the mean of four pixels than one of the four is."""
    small = render_image(town, Camera(80, 60, 65, ACROSS.cam_from_world), STILL).image.astype(float)
    light = (across.image / 255.0) ** 2.2  # pixels average light, not codes
    mean = light.reshape(60, 2, 80, 2, 3).mean((1, 3)) ** (1 / 2.2) * 255
    one = across.image[::2, ::2].astype(float)
    assert np.abs(small - mean).mean() < 0.7 * np.abs(one - mean).mean()


def test_a_wall_keeps_its_detail_when_the_camera_comes_close(town):
    """Fine texture appears with nearness: a hand's breadth of plaster is not a flat color."""
    mesh = town.mesh
    area = np.ptp(mesh.corners[:, :, 2], axis=1) * np.linalg.norm(np.ptp(mesh.corners[:, :, :2], axis=1), axis=1)
    wall = np.argmax(np.where(mesh.material == Material.PLASTER, area, 0))
    place = mesh.corners[wall].mean(0)
    dull = replace(STILL, sun_strength=0, zenith=(0.6, 0.6, 0.6), horizon=(0.6, 0.6, 0.6))
    for distance in (8.0, 1.0, 0.25):
        camera = Camera.looking(place + mesh.normal[wall] * distance, place, (64, 48), 240)
        image = render_image(town, camera, dull).image.astype(float).mean(2)
        assert np.abs(np.diff(image, axis=1)).mean() > 0.004 * image.mean()


def test_by_night_it_is_dark_but_for_lamps(town, across):
    night = Conditions(
        sun_strength=0, zenith=(0.006, 0.007, 0.012), horizon=(0.03, 0.02, 0.02), clouds=0, lamps=1.0, metering=0
    )
    image = render_image(town, ACROSS, replace(night, exposure=1.1)).image
    assert np.median(image) < np.median(across.image) / 2
    assert image.max() > 240  # the lanterns themselves


def test_people_and_cars_are_marked_and_stand_before_the_town(town, across):
    busy = render_image(town, ACROSS, replace(STILL, people=25, cars=4, seed=3))
    assert 0.005 < busy.moving.mean() < 0.5
    assert not across.moving.any()
    behind = across.depth[busy.moving]
    assert (busy.depth[busy.moving] <= np.where(behind > 0, behind, np.inf)).all()
    np.testing.assert_array_equal(busy.depth[~busy.moving], across.depth[~busy.moving])


def test_the_same_picture_again_is_the_same_and_noise_depends_on_the_seed(town):
    camera = Camera(64, 48, 52, ACROSS.cam_from_world)
    grainy = Conditions(noise=0.02, people=3)
    first, again, other = (render_image(town, camera, grainy, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.image, again.image)
    assert (first.image != other.image).mean() > 0.2
    np.testing.assert_array_equal(first.depth, other.depth)
