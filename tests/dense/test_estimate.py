"""A dense estimate says where points are in original pixels, whatever sizes the network saw."""

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pdc_sfm.dense.estimate import DenseEstimate, from_level
from pdc_sfm.dense.field import cyclic_error, field_from
from pdc_sfm.dense.views import View
from pdc_sfm.errors import SettingsError
from pdc_sfm.network import LevelOutput
from pdc_sfm.pixels import grid_points, inside, rescale_matrix, transform


def level_output(query_from_reference, reference_size, query_size, branch_reference, branch_query, stride=4):
    """What an exact network would give for a homography between original pixel indices; sizes are (width, height)."""
    grid = grid_points((branch_reference[0] // stride, branch_reference[1] // stride), branch_reference)
    to_branch = rescale_matrix(query_size, branch_query)
    from_branch = rescale_matrix(branch_reference, reference_size)
    flow = transform(grid, to_branch @ query_from_reference @ from_branch) - grid
    flow = torch.from_numpy(flow.transpose(2, 0, 1)[None].copy())
    mixture = torch.zeros(1, 2, *flow.shape[-2:])
    return LevelOutput(1, flow, mixture, mixture + 1, branch_reference[::-1], branch_query[::-1])


def zoom_about(center, factor: float) -> np.ndarray:
    x, y = center
    return np.array([[factor, 0, x * (1 - factor)], [0, factor, y * (1 - factor)], [0, 0, 1.0]])


@settings(max_examples=25, deadline=None)
@given(
    reference=st.tuples(st.integers(40, 900), st.integers(40, 900)),
    query=st.tuples(st.integers(40, 900), st.integers(40, 900)),
    seen=st.tuples(*[st.integers(32, 80)] * 4),
    zoom=st.floats(0.3, 3),
)
def test_flow_is_exact_in_original_pixels_for_any_sizes(reference, query, seen, zoom):
    branch = tuple(8 * side for side in seen)
    truth = zoom_about((20.0, 30.0), zoom)
    estimate = from_level(level_output(truth, reference, query, branch[:2], branch[2:]), reference, query)
    expected = transform(estimate.reference_points, truth)
    np.testing.assert_allclose(estimate.query_points, expected, atol=2e-3)
    clear = np.abs(expected - np.clip(expected, -0.5, np.array(query) - 0.5)).max(-1) > 1e-2
    assert not estimate.valid[clear].any()
    well_inside = inside(expected + 0.01, query) & inside(expected - 0.01, query)
    assert estimate.valid[well_inside].all()


def test_a_view_of_the_query_is_composed_exactly():
    query_from_view = np.array([[0.9, -0.2, 30], [0.15, 1.1, -4], [2e-4, -1e-4, 1]])
    view_from_reference = np.array([[1.05, 0.02, 3], [0.01, 0.97, -2], [0, 0, 1.0]])
    output = level_output(view_from_reference, (320, 256), (288, 264), (320, 256), (288, 264))
    estimate = from_level(output, (320, 256), (400, 300), view_size=(288, 264), query_from_view=query_from_view)
    expected = transform(estimate.reference_points, query_from_view @ view_from_reference)
    np.testing.assert_allclose(estimate.query_points, expected, atol=1e-3)
    in_view = inside(transform(estimate.reference_points, view_from_reference), (288, 264))
    np.testing.assert_array_equal(estimate.valid, in_view & inside(expected, (400, 300)))


def test_points_beyond_the_horizon_of_a_view_are_not_valid():
    query_from_view = np.array([[1, 0, 0], [0, 1, 0], [-1 / 100, 0, 1.0]])  # the horizon is the column x = 100
    output = level_output(np.eye(3), (256, 256), (256, 256), (256, 256), (256, 256))
    estimate = from_level(output, (256, 256), (256, 256), query_from_view=query_from_view)
    assert not estimate.valid[estimate.reference_points[..., 0] > 100].any()
    assert np.isfinite(estimate.flow).all()


@pytest.mark.parametrize("zoom", [0.5, 2.0, 3.0])
def test_sampling_is_exact_up_to_the_border_under_zoom(zoom):
    truth = zoom_about((128.0, 100.0), zoom)
    size, query = (256, 200), (1000, 1000)
    estimate = from_level(level_output(truth, size, query, size, query), size, query)
    points = np.array([[-0.5, -0.5], [255.5, 199.5], [0.0, 77.3], [131.7, 12.2]], np.float32)
    at = estimate.sample(points)
    np.testing.assert_allclose(points + at.flow, transform(points, truth), atol=1e-3)


def test_resampling_gives_one_vector_a_pixel():
    truth = zoom_about((128.0, 100.0), 1.7)
    estimate = from_level(level_output(truth, (256, 200), (256, 200), (256, 200), (256, 200)), (256, 200), (256, 200))
    full = estimate.resampled((256, 200))
    assert full.flow.shape == (200, 256, 2)
    assert full.stride == 1
    x, y = np.meshgrid(np.arange(256), np.arange(200))
    np.testing.assert_allclose(full.query_points, transform(np.stack((x, y), -1), truth), atol=1e-3)
    np.testing.assert_array_equal(full.valid, inside(full.query_points, (256, 200)))


def test_without_a_head_confidence_is_equation_7():
    log_var, logits = np.log(np.array([[[1.0, 9.0]]], np.float32)), np.array([[[0.5, -0.25]]], np.float32)
    estimate = DenseEstimate(np.zeros((1, 1, 2), np.float32), log_var, logits, np.ones((1, 1), bool), (4, 4), (4, 4))
    alpha = np.exp([0.5, -0.25]) / np.exp([0.5, -0.25]).sum()
    for radius in (0.5, 1.0, 3.0):
        within = (1 - np.exp(-np.sqrt(2) * radius / np.array([1.0, 3.0]))) ** 2
        np.testing.assert_allclose(estimate.confidence_within(radius), (alpha * within).sum(), rtol=1e-5)


def test_a_network_without_uncertainty_gives_flow_but_no_confidence():
    output = level_output(np.eye(3), (64, 64), (64, 64), (64, 64), (64, 64))
    bare = from_level(LevelOutput(1, output.flow, None, None, (64, 64), (64, 64)), (64, 64), (64, 64))
    assert bare.valid.all()
    assert bare.resampled((64, 64)).log_var is None
    with pytest.raises(SettingsError, match="confidence=cyclic"):
        bare.confidence  # noqa: B018


def cycle(forward, backward):
    return cyclic_error(field_from(forward), field_from(backward))[0, 0].numpy()


def test_cyclic_error_is_zero_for_inverse_flows_and_the_shift_for_a_shifted_one():
    size = (320, 240)
    truth = zoom_about((150.0, 100.0), 1.4)
    shifted = np.array([[1, 0, 3.0], [0, 1, 4.0], [0, 0, 1]]) @ np.linalg.inv(truth)
    forward = from_level(level_output(truth, size, size, size, size), size, size)
    back = from_level(level_output(np.linalg.inv(truth), size, size, size, size), size, size)
    wrong = from_level(level_output(shifted, size, size, size, size), size, size)
    error = cycle(forward, back)
    assert np.isinf(error[~forward.valid]).all()
    assert error[forward.valid].max() < 1e-3
    inner = np.isfinite(cycle(forward, wrong))
    assert inner.mean() > 0.4
    np.testing.assert_allclose(cycle(forward, wrong)[inner], 5.0, atol=1e-3)


def test_a_rotated_view_holds_the_whole_image_and_knows_where_its_pixels_come_from():
    image = np.zeros((60, 100, 3), np.uint8)
    image[10:20, 70:90] = 255
    view = View.whole(image, (100, 60), (100, 60)).rotated(90)  # counter-clockwise: the right side goes to the top
    assert view.size == (60, 100)
    shown = view.render()
    np.testing.assert_allclose(shown[10:30, 10:20], 1, atol=1e-6)
    assert shown.sum() == pytest.approx(3 * 200, rel=1e-5)
    corners = transform(np.array([[0, 0], [59, 99.0]]), view.original_from_view)
    np.testing.assert_allclose(corners, [[99, 0], [0, 59]], atol=1e-9)
    for angle in (30, 45, 200):
        turned = View.whole(image, (100, 60), (100, 60)).rotated(angle)
        corners = np.array([[-0.5, -0.5], [99.5, -0.5], [-0.5, 59.5], [99.5, 59.5]])
        assert inside(transform(corners, np.linalg.inv(turned.original_from_view)), turned.size).all()


def test_a_warped_view_shows_the_original_at_the_places_it_claims():
    y, x = np.mgrid[0:200, 0:240]
    image = np.stack((x, y, np.full_like(x, 50)), -1).astype(np.uint8)  # colors are positions
    for zoom in (0.5, 1.0, 3.0):
        reference = View.whole(image, (240, 200), (120, 100))
        view = reference.seen_from(reference, zoom_about((110.0, 90.0), zoom))
        shown, places = view.render(), transform(grid_points((120, 100), (120, 100)), view.original_from_view)
        clear = inside(places, (236, 196)) & (places > 4).all(-1)
        pixel = places[0, 1, 0] - places[0, 0, 0]  # of the view, in the original
        least = pixel / 64 if cv2.__version__ < "5" else 0.0  # OpenCV 4 rounds places to 32nds of a pixel
        np.testing.assert_allclose(255 * shown[clear][:, :2], places[clear], atol=max(0.05, least))


def test_a_shrunken_view_has_sides_the_network_takes_as_they_are():
    view = View.whole(np.zeros((601, 803, 3), np.uint8), (803, 601), (803, 601)).scaled(0.6)
    assert view.size == (480, 360)
    np.testing.assert_allclose(
        transform(np.array([[-0.5, -0.5], [479.5, 359.5]]), view.original_from_view),
        [[-0.5, -0.5], [802.5, 600.5]],
        atol=1e-9,
    )  # corners on corners
