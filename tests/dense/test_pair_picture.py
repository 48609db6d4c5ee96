"""The picture of a pair shows what it claims to show."""

import numpy as np
import pytest

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.matches.select import SelectSettings, select_matches
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pair_picture import UNRELIABLE, pair_picture
from pdc_sfm.pictures import match_lines, sample_image, tint
from pdc_sfm.pixels import grid_points, inside

SIZE = (200, 160)


def shifted_pair(shift=(20, 0)):
    """A random texture, the same moved, and the exact estimate; the lower half is not confident."""
    coarse = np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)
    plane = np.repeat(np.repeat(coarse, 6, 0), 6, 1)
    image0, image1 = plane[40:200, 60:260], plane[40 - shift[1] : 200 - shift[1], 60 - shift[0] : 260 - shift[0]]
    grid = grid_points((50, 40), SIZE)
    flow = np.broadcast_to(np.array(shift, np.float32), grid.shape)
    logits = np.zeros((40, 50, 2), np.float32)
    logits[:20, :, 0], logits[20:, :, 0] = 9, -9
    log_var = np.zeros_like(logits)
    log_var[..., 1] = 9
    return image0, image1, DenseEstimate(flow, log_var, logits, inside(grid + flow, SIZE), SIZE, SIZE)


def test_the_warped_image_equals_the_reference_where_reliable_and_is_red_elsewhere():
    image0, image1, estimate = shifted_pair()
    matches = select_matches(estimate, settings=SelectSettings(directions="forward"))
    picture = pair_picture(image0, image1, matches, estimate)
    warped = picture[-4 - 160 : -4, -4 - 200 : -4].astype(int)
    np.testing.assert_allclose(warped[2:70, 2:175], image0[2:70, 2:175], atol=2)
    red = 0.4 * image0[90:158, 2:175] + 0.6 * np.array(UNRELIABLE)
    np.testing.assert_allclose(warped[90:158, 2:175], red, atol=2)
    out_of_view = warped[2:70, 185:198]
    np.testing.assert_allclose(out_of_view, np.broadcast_to(0.6 * np.array(UNRELIABLE), out_of_view.shape), atol=1)


def test_a_pair_without_matches_has_a_picture_too():
    image0, image1, estimate = shifted_pair()
    picture = pair_picture(image0, image1, RawMatches.empty(), estimate)
    assert picture.dtype == np.uint8


def test_lines_end_at_the_matched_points():
    black = np.zeros((50, 80, 3), np.uint8)
    points0, points1 = np.array([[10.0, 20]]), np.array([[70.0, 40]])
    sheet = match_lines(black, black, points0, points1, np.array([[0, 255, 0]], np.uint8), gap=4)
    assert tuple(sheet[4 + 20, 4 + 10]) == (0, 255, 0)
    assert tuple(sheet[4 + 40, 8 + 80 + 70]) == (0, 255, 0)
    assert tuple(sheet[4 + 40, 4 + 10]) == (0, 0, 0)


def test_sampling_and_tinting():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 10
    points = np.array([[[1.0, 0.0], [0.5, 0.5], [9.0, 0.0]]])
    np.testing.assert_array_equal(sample_image(image, points)[0], [image[0, 1], image.mean((0, 1)), [0, 0, 0]])
    mask = np.array([[True, False], [False, False]])
    tinted = tint(image, mask, (200, 0, 0), 0.5)
    assert tuple(tinted[0, 0]) == (100, 5, 10)
    np.testing.assert_array_equal(tinted[1], image[1])


@pytest.mark.parametrize("sizes", [((60, 300), (300, 60)), ((16, 16), (2000, 90))])
def test_any_two_shapes_fit_on_one_sheet(sizes):
    images = [np.zeros((h, w, 3), np.uint8) for w, h in sizes]
    grid = grid_points((4, 4), sizes[0])
    zeros = np.zeros((4, 4, 2), np.float32)
    estimate = DenseEstimate(-grid, zeros, zeros, np.ones((4, 4), bool), *sizes)
    picture = pair_picture(*images, RawMatches.empty(), estimate)
    assert picture.ndim == 3
