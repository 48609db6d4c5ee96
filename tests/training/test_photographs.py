"""Folders as users have them: with files that are no photographs, tiny, blank or gray."""

import cv2
import numpy as np
import pytest
from photo_fakes import waves

from pdc_sfm.errors import ImageError, UserError
from pdc_sfm.images import write_image
from pdc_sfm.synthetic.photographs import MAX_SIDE, held_out, open_cutouts, open_photographs


@pytest.fixture
def folder(tmp_path):
    for n in range(3):
        write_image(tmp_path / f"street_{n}.png", waves(n, (120, 160)))
    write_image(tmp_path / "gray.png", waves(0, (120, 160))[..., 0])
    write_image(tmp_path / "tiny.png", waves(0, (40, 160)))
    write_image(tmp_path / "blank.png", np.full((120, 160, 3), 90, np.uint8))
    (tmp_path / "broken.jpg").write_bytes(b"not an image")
    (tmp_path / "empty.jpg").write_bytes(b"")
    return tmp_path


def test_unusable_photographs_are_left_out_and_counted_by_reason(folder):
    photos = open_photographs(folder, "all")
    assert photos.names == ["gray.png", "street_0.png", "street_1.png", "street_2.png"]
    assert photos.skipped == {
        "blank.png": "blank",
        "broken.jpg": "unreadable",
        "empty.jpg": "unreadable",
        "tiny.png": "smaller than 96 px",
    }
    assert "4 photographs" in photos.summary()
    assert "skipped 4 (1 blank, 2 unreadable, 1 smaller than 96 px; first: blank.png)" in photos.summary()


def test_a_photograph_is_rgb_and_a_gray_one_has_three_equal_channels(folder):
    photos = open_photographs(folder, "all")
    assert np.array_equal(photos[1], waves(0, (120, 160)))
    gray = photos[0]
    assert np.array_equal(gray[..., 0], gray[..., 1])
    assert np.array_equal(gray[..., 0], waves(0, (120, 160))[..., 0])


def test_large_photographs_are_shrunk(tmp_path):
    write_image(tmp_path / "large.png", np.repeat(waves(0, (100, 160)), MAX_SIDE // 80, axis=1))
    assert max(open_photographs(tmp_path, "all")[0].shape) == MAX_SIDE


def test_large_jpegs_are_shrunk_by_their_decoder_to_the_same_picture(tmp_path):
    photo = cv2.resize(waves(0, (150, 300)), (2400, 1200), interpolation=cv2.INTER_CUBIC)
    write_image(tmp_path / "large.jpg", photo)
    write_image(tmp_path / "large.png", photo)
    by_decoder, by_area = (open_photographs(tmp_path, "all")[i].astype(int) for i in range(2))
    assert by_decoder.shape == by_area.shape == (512, 1024, 3)
    assert np.abs(by_decoder - by_area).mean() < 2


def test_one_photograph_is_too_few_to_train_on(tmp_path):
    write_image(tmp_path / "only.png", waves(0, (120, 160)))
    with pytest.raises(UserError, match="at least two"):
        open_photographs(tmp_path, "training")


def test_an_empty_or_missing_folder_is_an_error_that_says_so(tmp_path):
    with pytest.raises(UserError, match="no usable photograph"):
        open_photographs(tmp_path)
    with pytest.raises(ImageError, match="not a folder"):
        open_photographs(tmp_path / "nowhere")


def test_a_photograph_that_vanishes_is_named(folder):
    photos = open_photographs(folder, "all")
    (folder / "street_1.png").unlink()
    with pytest.raises(ImageError, match=r"street_1\.png"):
        photos[2]


def test_about_three_percent_are_held_out_in_blocks_of_neighboring_numbers():
    names = [f"series{s}_{n:05d}.jpg" for s in range(10) for n in range(5000)]
    held = [held_out(name) for name in names]
    assert 0.022 < np.mean(held) < 0.038
    assert held[:10] == [held[0]] * 10
    assert held_out("a/b_12345.png") == held_out("a/b_12347.jpg")  # the suffix does not matter


def test_training_and_validation_share_no_photograph(tmp_path):
    for n in range(0, 3000, 10):
        if n < 60 or held_out(f"p{n:04d}.png"):
            write_image(tmp_path / f"p{n:04d}.png", waves(n, (96, 96)))
    parts = {part: set(open_photographs(tmp_path, part).names) for part in ("training", "validation", "all")}
    assert parts["training"]
    assert parts["validation"]
    assert not parts["training"] & parts["validation"]
    assert parts["training"] | parts["validation"] == parts["all"]


def test_an_unrelated_photograph_is_of_another_series_or_far_off_in_the_only_one(tmp_path):
    for name in ("oxford_0001", "oxford_0002", "oxford_0003", "paris_0001"):
        write_image(tmp_path / f"{name}.png", waves(len(name), (96, 96)))
    photos, rng = open_photographs(tmp_path, "all"), np.random.default_rng(0)
    assert all(photos.names[photos.other(0, rng)] == "paris_0001.png" for _ in range(20))
    for n in range(12):
        write_image(tmp_path / "one" / f"walk_{n:04d}.png", waves(n, (96, 96)))
    photos = open_photographs(tmp_path / "one", "all")
    steps = {(photos.other(i, rng) - i) % 12 for i in range(12) for _ in range(20)}
    assert steps == {4, 5, 6, 7}


def test_cutouts_need_transparency(tmp_path):
    write_image(tmp_path / "opaque.png", waves(0, (50, 50)))
    with pytest.raises(UserError, match="no RGBA picture"):
        open_cutouts(tmp_path)
    cutout = np.zeros((50, 60, 4), np.uint8)
    cutout[10:40, 10:40] = (0, 0, 255, 255)  # red, in the file's order
    cv2.imwrite(str(tmp_path / "object.png"), cutout)
    cutouts = open_cutouts(tmp_path)
    (read,) = cutouts
    assert cutouts.skipped == ["opaque.png"]
    assert "1 cut-outs" in cutouts.summary()
    assert tuple(read[20, 20]) == (255, 0, 0, 255)
