"""Flow and confidence in color."""

import numpy as np

from pdc_sfm.pictures import flow_to_color, gray, heat, overlay, tile


def color_of(x: float, y: float, largest: float = 1.0) -> list[int]:
    return flow_to_color(np.array([[[x, y]]], np.float32), largest)[0, 0].tolist()


def test_no_flow_is_white_and_the_unknown_is_black():
    assert color_of(0, 0) == [255, 255, 255]
    assert color_of(np.nan, 1) == [0, 0, 0]


def test_hues_follow_the_wheel_of_middlebury():
    assert color_of(1, 0) == [255, 0, 0]  # to the right: red
    assert color_of(1, -1e-9) == color_of(1, 1e-9)  # the wheel closes there
    red, green, blue = color_of(-1, 0)  # to the left: between cyan and blue
    assert red == 0
    assert blue > green > 100
    red, green, blue = color_of(0, 1)  # downwards: yellow
    assert min(red, green) > 200
    assert blue < 50


def test_shorter_flow_is_paler_and_longer_than_the_largest_is_no_darker():
    assert color_of(0.5, 0) == [255, 128, 128]
    assert color_of(7, 0) == color_of(1, 0)


def test_by_default_the_longest_vector_is_the_most_saturated():
    picture = flow_to_color(np.array([[[10, 0], [5, 0], [np.nan, 0]]], np.float32))
    assert picture[0, 0].tolist() == [255, 0, 0]
    assert picture[0, 1].tolist() == [255, 128, 128]


def test_confidence_runs_from_red_over_yellow_to_green():
    low, middle, high, unknown = heat(np.array([[0, 0.5, 1, np.nan]]))[0].astype(int)
    assert low[0] > 2 * low[1]
    assert min(middle[0], middle[1]) > 200
    assert high[1] > 1.9 * max(high[0], high[2])
    assert unknown.tolist() == [0, 0, 0]


def test_gray_takes_masks_and_numbers():
    assert gray(np.array([[True, False]]))[0, :, 0].tolist() == [255, 0]
    assert gray(np.array([[0.5, 2.0]]))[0, :, 1].tolist() == [128, 255]


def test_an_overlay_is_the_mean_of_both():
    mixed = overlay(np.full((2, 2, 3), 100, np.uint8), np.full((2, 2, 3), 200, np.uint8))
    assert (mixed == 150).all()


def test_tiles_keep_their_pictures_and_captions_have_room():
    left, right = np.full((5, 7, 3), 10, np.uint8), np.full((3, 4, 3), 20, np.uint8)
    sheet = tile([[left, right]], gap=2)
    assert sheet.shape == (2 + 5 + 2, 2 + 7 + 2 + 4 + 2, 3)
    assert (sheet[2:7, 2:9] == 10).all()
    assert (sheet[2:5, 11:15] == 20).all()
    titled = tile([[left, right]], ["one", "two"], gap=2)
    assert (titled[-9:] == sheet).all()
    assert (titled[:-9] < 128).any()
