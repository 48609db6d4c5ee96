"""Cells and the pixels in them, against the same things said plainly on whole images."""

import math

import pytest
import torch
from torch.nn import functional as F

from pdc_sfm.dense.cells import (
    CELL,
    INNER,
    differences,
    inner_gradient,
    largest,
    means,
    planes,
    smooth,
    sums,
    upsample,
)


def whole(cut):
    """Planes (B, CELL, CELL, h, w) -> the image (B, 1, H, W), pixel by pixel."""
    batch, rows, columns, height, width = cut.shape
    image = torch.full((batch, 1, rows * height, columns * width), torch.nan)
    for i in range(rows):
        for j in range(columns):
            image[:, 0, i::rows, j::columns] = cut[:, i, j]
    return image


def random(*shape, seed=0):
    return torch.rand(*shape, generator=torch.manual_seed(seed))


def test_planes_hold_the_pixels_of_an_image_also_of_a_part_of_it():
    image = random(2, 1, 24, 32)
    assert torch.equal(whole(planes(image)), image)
    assert torch.equal(whole(planes(image[:, :, 4:20, 8:24])), image[:, :, 4:20, 8:24])


def test_spread_is_bilinear_interpolation():
    cells = random(2, 3, 6, 9)
    expected = F.interpolate(cells, scale_factor=CELL, mode="bilinear", align_corners=False)
    found = upsample(cells)
    for channel in range(3):
        torch.testing.assert_close(whole(found[:, channel])[:, 0], expected[:, channel])
    torch.testing.assert_close(upsample(cells, INNER), found[:, :, 1:-1, 1:-1])


def test_spread_can_go_on_linearly_to_the_border():
    y, x = torch.meshgrid(torch.arange(24.0), torch.arange(32.0), indexing="ij")
    plane = (0.7 * x - 0.2 * y + 3)[None, None]
    found = whole(upsample(F.avg_pool2d(plane, CELL), linear=True)[:, 0])
    torch.testing.assert_close(found, plane)


def test_differences_are_those_of_the_pixels_around_each():
    image = random(2, 1, 24, 32)
    x, y = differences(planes(image))
    assert torch.allclose(whole(x)[..., 1:-1], image[..., 2:] - image[..., :-2])
    assert torch.allclose(whole(y)[..., 1:-1, :], image[..., 2:, :] - image[..., :-2, :])
    assert not whole(x)[..., [0, -1]].any()
    assert not whole(y)[..., [0, -1], :].any()
    for inner, all_of_it in zip(inner_gradient(planes(image)), (x, y)):
        torch.testing.assert_close(inner, all_of_it[:, 1:-1, 1:-1] / 2)


@pytest.mark.parametrize("window", [(1, 1), (2, 1, 1), (2, 2, 1, 1), (3, 2, 1, 1, 1)])
def test_sums_are_those_of_a_bell_of_known_width_and_nothing_lies_outside(window):
    cells = torch.zeros(1, 1, 61, 61)
    cells[..., 30, 30] = 1
    bell, places = sums(cells, window)[0, 0], torch.arange(61.0) - 30
    torch.testing.assert_close(bell, bell.flip(0))
    torch.testing.assert_close(bell, bell.T)
    torch.testing.assert_close(bell.sum(), torch.tensor(1.0))
    torch.testing.assert_close((bell.sum(0) * places.square()).sum(), torch.tensor(sum(n * n for n in window) / 4))
    assert (bell[30, 30:].diff() <= 0).all()
    flat = torch.ones(1, 1, 61, 61)
    torch.testing.assert_close(sums(flat, window)[0, 0, 30, 30], torch.tensor(1.0))
    assert 0.25 < sums(flat, window)[0, 0, 0, 0] < 0.6  # a quarter, and what the middle row and column have


def test_means_are_those_of_a_gaussian_by_what_is_there():
    cells = torch.zeros(1, 1, 61, 61)
    cells[..., 30, 30] = 1
    y, x = torch.meshgrid(torch.arange(61.0), torch.arange(61.0), indexing="ij")
    expected = torch.exp(-((x - 30) ** 2 + (y - 30) ** 2) / (2 * 2.5**2)) / (2 * math.pi * 2.5**2)
    torch.testing.assert_close(means(cells, (2.5,))[0, 0], expected, atol=0.005 * expected.max().item(), rtol=0)
    cells = random(2, 2, 40, 30)
    torch.testing.assert_close(means(torch.ones_like(cells), (7.0,)), torch.ones_like(cells))


def test_evening_out_leaves_what_is_linear_and_removes_noise():
    y, x = torch.meshgrid(torch.arange(20.0), torch.arange(30.0), indexing="ij")
    linear = torch.stack((0.3 * x - 0.1 * y, x + y))[None]
    torch.testing.assert_close(smooth(linear, (2, 2, 1, 1)), linear)
    noise = torch.randn(1, 2, 40, 40, generator=torch.manual_seed(0))
    assert smooth(noise, (2, 2, 1, 1)).std() < 0.3
    assert smooth(noise[..., :4, :4], (2, 2, 1, 1)).shape == (1, 2, 4, 4)


def test_largest_is_max_pooling():
    cells = random(2, 2, 12, 17)
    assert torch.equal(largest(cells, 2), F.max_pool2d(cells, 5, 1, 2))
