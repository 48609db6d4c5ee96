"""Image files: every common kind is read as RGB, the rest is refused clearly."""

import cv2
import numpy as np
import pytest

from pdc_sfm.errors import ImageError
from pdc_sfm.images import list_images, read_image, write_image


def test_colors_and_depths_are_read_as_rgb_bytes(tmp_path):
    rgb = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    write_image(tmp_path / "a.png", rgb)
    assert np.array_equal(read_image(tmp_path / "a.png"), rgb)
    cv2.imwrite(str(tmp_path / "deep.png"), rgb[..., ::-1].astype(np.uint16) * 257)
    assert np.array_equal(read_image(tmp_path / "deep.png"), rgb)
    cv2.imwrite(str(tmp_path / "gray.png"), rgb[..., 0])
    assert np.array_equal(read_image(tmp_path / "gray.png"), np.repeat(rgb[..., :1], 3, -1))
    cv2.imwrite(str(tmp_path / "alpha.png"), np.dstack([rgb[..., ::-1], rgb[..., 0]]))
    assert np.array_equal(read_image(tmp_path / "alpha.png"), rgb)


def test_exif_orientation_is_ignored_as_in_colmap(tmp_path):
    write_image(tmp_path / "a.jpg", np.zeros((16, 32, 3), np.uint8))
    data = (tmp_path / "a.jpg").read_bytes()
    turned = bytes.fromhex("ffe1002245786966000049492a000800000001001201030001000000060000000000000000")
    (tmp_path / "b.jpg").write_bytes(data[:2] + turned[:36] + data[2:])
    assert read_image(tmp_path / "b.jpg").shape == (16, 32, 3)


@pytest.mark.parametrize("content", [b"", b"not an image", b"\xff\xd8\xff\xe0" + b"\x00" * 50])
def test_what_cannot_be_read_is_named(tmp_path, content):
    (tmp_path / "x.jpg").write_bytes(content)
    with pytest.raises(ImageError, match=r"x\.jpg"):
        read_image(tmp_path / "x.jpg")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(ImageError, match="No such file"):
        read_image(tmp_path / "absent.jpg")
    with pytest.raises(ImageError, match="is a folder"):
        read_image(tmp_path)


def test_images_are_listed_below_a_folder_with_forward_slashes(tmp_path):
    (tmp_path / "db").mkdir()
    for name in ("b.JPG", "db/a.png", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert list_images(tmp_path) == ["b.JPG", "db/a.png"]
