"""Keypoints matched through the flow: confident, within d, one to one."""

from dataclasses import replace

import numpy as np
import pytest

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.errors import SettingsError
from pdc_sfm.matches.snap import SnapSettings, snap_matches
from pdc_sfm.pixels import grid_points, inside, transform

SIZE = (800, 600)  # a smaller side of 600: distances are as in the settings
TRUTH = np.array([[1.4, 0.1, -150], [-0.08, 1.5, -140], [0, 0, 1.0]])


def exact(homography, size=SIZE, weight=9.0) -> DenseEstimate:
    grid = grid_points((size[0] // 4, size[1] // 4), size)
    points = transform(grid, homography)
    logits = np.zeros((*grid.shape[:2], 2), np.float32)
    logits[..., 0] = weight
    log_var = np.zeros_like(logits)
    log_var[..., 1] = 8
    return DenseEstimate((points - grid).astype(np.float32), log_var, logits, inside(points, size), size, size)


@pytest.fixture(scope="module")
def estimates():
    return exact(TRUTH), exact(np.linalg.inv(TRUTH))


def visible_keypoints(count: int, homography=TRUTH, size=SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Keypoints of image0 that image1 sees, and where; at least 12 pixels apart."""
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.arange(20, size[0] - 20, 15.0), np.arange(20, size[1] - 20, 15.0))
    points = np.stack((x.ravel(), y.ravel()), 1) + rng.uniform(-1, 1, (x.size, 2))
    there = transform(points, homography)
    points, there = (p[inside(there + 3, size) & inside(there - 3, size)] for p in (points, there))
    assert len(points) >= count
    return points[:count].astype(np.float32), there[:count].astype(np.float32)


def test_every_keypoint_finds_its_partner_whatever_the_order(estimates):
    points, there = visible_keypoints(300)
    shuffle = np.random.default_rng(1).permutation(300)
    jitter = np.random.default_rng(2).uniform(-1.5, 1.5, (300, 2)).astype(np.float32)
    found = snap_matches(points, (there + jitter)[shuffle], *estimates)
    assert len(found) == 300
    np.testing.assert_array_equal(shuffle[found.indices1], found.indices0)
    assert found.indices0.dtype == found.indices1.dtype == np.int32
    assert found.scores.dtype == np.float32
    np.testing.assert_allclose(found.scores, (1 - np.exp(-np.sqrt(2))) ** 2, rtol=1e-3)


@pytest.mark.parametrize(("size", "limit"), [(SIZE, 4.0), ((1600, 1200), 8.0), ((400, 300), 2.0)])
def test_the_distance_is_4_pixels_where_the_smaller_side_is_600(size, limit):
    still = exact(np.eye(3), size)
    points = visible_keypoints(300, np.eye(3), size)[0][::3]  # wider apart
    settings = SnapSettings(directions="forward")
    near = points + np.array([0.98 * limit, 0], np.float32)
    far = points + np.array([1.02 * limit, 0], np.float32)
    assert len(snap_matches(points, near, still, settings=settings)) == 100
    assert len(snap_matches(points, far, still, settings=settings)) == 0


def test_the_nearest_keypoint_is_taken_and_matches_are_one_to_one(estimates):
    points, there = visible_keypoints(50)
    rivals = np.concatenate((there + 3, there + 0.5, there - 2))  # three candidates for each
    found = snap_matches(points, rivals, *estimates)
    np.testing.assert_array_equal(found.indices0, np.arange(50))
    np.testing.assert_array_equal(found.indices1, np.arange(50, 100))
    # and from the other side: several keypoints of image0 claim one of image1; the closest one gets it
    crowd = np.concatenate((points + 1.5, points + 0.1, points - 1))
    found = snap_matches(crowd, there, *estimates)
    np.testing.assert_array_equal(found.indices0, np.arange(50, 100))
    np.testing.assert_array_equal(found.indices1, np.arange(50))


def test_confidence_is_read_at_the_keypoint(estimates):
    forward, _ = estimates
    logits = forward.logits.copy()
    logits[:, : logits.shape[1] // 2, 0] = -9  # the left half of image0 is not trusted
    unsure = replace(forward, logits=logits)
    points, there = visible_keypoints(300)
    found = snap_matches(points, there, unsure, settings=SnapSettings(directions="forward"))
    np.testing.assert_array_equal(found.indices0, np.flatnonzero(points[:, 0] > 399.5))


def test_directions_unite_or_must_agree(estimates):
    forward, backward = estimates
    points, there = visible_keypoints(200)
    lost = replace(forward, logits=forward.logits * [-1, 1])
    count = {
        d: len(snap_matches(points, there, lost, backward, SnapSettings(directions=d)))
        for d in ("forward", "both", "mutual")
    }
    assert count == {"forward": 0, "both": 200, "mutual": 0}
    assert len(snap_matches(points, there, forward, backward, SnapSettings(directions="mutual"))) == 200


def test_the_cyclic_check_drops_what_does_not_come_back(estimates):
    forward, backward = estimates
    points, there = visible_keypoints(200)
    shifted = replace(backward, flow=backward.flow + np.float32(5))
    strict = SnapSettings(directions="forward", cyclic_distance=3.0)
    assert len(snap_matches(points, there, forward, backward, strict)) == 200
    assert len(snap_matches(points, there, forward, shifted, strict)) == 0
    loose = replace(strict, cyclic_distance=10.0)
    assert len(snap_matches(points, there, forward, shifted, loose)) == 200


def test_snapping_is_exact_under_zoom_up_to_the_image_border():
    """A shift of 1.5 (z - 1) pixels, 3 pixels at z = 3, would lose these with d = 0.1."""
    truth = np.array([[3.0, 0, 0], [0, 3.0, 0], [0, 0, 1]])
    forward = exact(truth)
    points = np.array([[0, 0], [0.7, 120.2], [200.4, 0.3], [150.5, 99.25]], np.float32)
    there = transform(points, truth).astype(np.float32)
    found = snap_matches(points, there, forward, settings=SnapSettings(directions="forward", distance=0.1))
    np.testing.assert_array_equal(found.indices0, np.arange(4))


def test_hlocs_arrays_and_raw_matches(estimates):
    points, there = visible_keypoints(30)
    found = snap_matches(np.concatenate((points, [[1.0, 1.0]])).astype(np.float32), there[::-1], *estimates)
    partners, scores = found.matches0(31)
    assert partners.dtype == np.int32
    np.testing.assert_array_equal(partners, [*range(29, -1, -1), -1])
    assert scores[30] == 0
    assert (scores[:30] > 0.5).all()
    raw = found.raw(points, there[::-1])
    np.testing.assert_allclose(raw.keypoints1, transform(raw.keypoints0, TRUTH), atol=1e-2)


def test_an_image_without_keypoints_has_no_matches(estimates):
    points, _ = visible_keypoints(5)
    none = np.zeros((0, 2), np.float32)
    assert len(snap_matches(points, none, *estimates)) == 0
    assert len(snap_matches(none, points, *estimates)) == 0
    assert len(snap_matches(none, none, *estimates)) == 0


def test_settings_that_keep_nothing_are_refused():
    for wrong in ({"distance": 0}, {"threshold": 1.0}, {"cyclic_distance": 0.0}, {"radius": -1.0}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            SnapSettings(**wrong)
