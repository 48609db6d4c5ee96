"""Arrays to network input: what is converted and what is refused."""

import numpy as np
import pytest
import torch

from pdc_sfm.errors import ImageError
from pdc_sfm.network import prepare_image


def test_eight_and_sixteen_bits_and_floats_of_one_picture_agree():
    eight = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    expected = torch.from_numpy(eight).permute(2, 0, 1)[None] / 255
    assert torch.allclose(prepare_image(eight), expected)
    assert torch.allclose(prepare_image(eight.astype(np.uint16) * 257), expected)
    assert torch.allclose(prepare_image(eight / 255.0), expected)


def test_gray_is_repeated_and_transparency_dropped():
    gray = np.random.default_rng(0).integers(0, 256, (16, 16), np.uint8)
    assert torch.equal(prepare_image(gray), prepare_image(np.repeat(gray[..., None], 3, -1)))
    assert torch.equal(prepare_image(gray[..., None]), prepare_image(gray))
    rgba = np.dstack([gray, gray, gray, np.zeros_like(gray)])
    assert torch.equal(prepare_image(rgba), prepare_image(gray))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((15, 40, 3), np.uint8), "40x15 pixels: at least 16x16"),
        (np.zeros((0, 0, 3), np.uint8), "0x0 pixels"),
        (np.zeros((20, 20, 2), np.uint8), "has shape"),
        (np.zeros(400, np.uint8), "has shape"),
        (np.zeros((1, 20, 20, 3), np.uint8), "has shape"),
        (np.full((20, 20, 3), np.nan), "NaN"),
        (np.full((20, 20, 3), 255.0), r"must be in \[0, 1\]"),
        (np.full((20, 20, 3), -0.5), r"must be in \[0, 1\]"),
        (np.zeros((20, 20, 3), np.int64), "int64 pixels: convert"),
        (np.zeros((20, 20, 3), bool), "bool pixels: convert"),
    ],
)
def test_what_is_no_image_is_refused_in_one_line(image, message):
    with pytest.raises(ImageError, match=message) as caught:
        prepare_image(image, "a.jpg")
    assert str(caught.value).startswith("a.jpg")
    assert "\n" not in str(caught.value)
