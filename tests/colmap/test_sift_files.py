"""SIFT's hloc files: the same points and matches that COLMAP would use itself."""

import cv2
import numpy as np
import pytest

from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.errors import ImageError
from pdc_sfm.store.pair_lists import write_pairs
from pdc_sfm.store.readers import open_features, open_matches

SHIFT = (23, 11)


@pytest.fixture
def images(tmp_path):
    """Three cuts of one random picture, the second moved by SHIFT, the third elsewhere."""
    rng = np.random.default_rng(0)
    picture = cv2.GaussianBlur(rng.uniform(0, 255, (400, 900)).astype(np.float32), (0, 0), 2.5)
    picture = cv2.normalize(picture, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    for name, x, y in (("a.png", 50, 50), ("b.png", 50 + SHIFT[0], 50 + SHIFT[1]), ("c.png", 600, 50)):
        cv2.imwrite(str(tmp_path / name), picture[y : y + 240, x : x + 260])
    return tmp_path


def test_matches_show_the_same_pixels(images):
    pairs = images / "pairs.txt"
    write_pairs(pairs, [("a.png", "b.png"), ("c.png", "a.png"), ("b.png", "a.png")])
    match_sift(images, pairs, images / "f.h5", images / "m.h5", threads=1)
    with open_features(images / "f.h5") as features, open_matches(images / "m.h5") as matches:
        assert features.keypoints("a.png").image_size == (260, 240)
        index, _ = matches.matches("a.png", "b.png")
        assert len(index) > 50
        moved = features.keypoints("a.png").points[index[:, 0]] - features.keypoints("b.png").points[index[:, 1]]
        assert np.median(np.abs(moved - SHIFT)) < 0.2
        assert len(matches.matches("a.png", "c.png")[0]) < len(index) / 4


def test_keypoints_of_an_earlier_file_are_kept_for_queries(images):
    write_pairs(images / "db.txt", [("a.png", "c.png")])
    write_pairs(images / "query.txt", [("b.png", "a.png")])
    match_sift(images, images / "db.txt", images / "f.h5", images / "m.h5", threads=1)
    match_sift(images, images / "query.txt", images / "q.h5", images / "qm.h5", images / "f.h5", threads=1)
    with open_features(images / "f.h5") as first, open_features(images / "q.h5") as second:
        np.testing.assert_array_equal(first.keypoints("a.png").points, second.keypoints("a.png").points)
    with open_matches(images / "qm.h5") as matches:
        assert len(matches.matches("b.png", "a.png")[0]) > 50


def test_an_unreadable_image_is_named(images):
    (images / "c.png").write_text("no image")
    write_pairs(images / "pairs.txt", [("a.png", "c.png")])
    with pytest.raises(ImageError, match=r"c\.png cannot be read"):
        match_sift(images, images / "pairs.txt", images / "f.h5", images / "m.h5", threads=1)
