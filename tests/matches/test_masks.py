"""A match under a mask in either image is dropped; masks are found by COLMAP's name or with .png for the suffix."""

import pickle

import numpy as np
import pytest

from pdc_sfm.errors import ImageError
from pdc_sfm.images import write_image
from pdc_sfm.matches.masks import Masks
from pdc_sfm.matches.types import RawMatches

SIZE = (21, 10)  # no multiple of eight


def mask(black: tuple[slice, slice] = (slice(0), slice(0))) -> np.ndarray:
    """White, black in rows and columns."""
    picture = np.full(SIZE[::-1], 255, np.uint8)
    picture[black] = 0
    return picture


@pytest.fixture
def masks(tmp_path):
    write_image(tmp_path / "a" / "b.jpg.png", mask((slice(2, 5), slice(9, 20))))
    write_image(tmp_path / "c.png", mask((slice(None), slice(0, 3))))
    return Masks(tmp_path)


def test_a_mask_has_its_image_name_with_png_behind_or_in_place_of_the_suffix(masks):
    assert masks.path("a/b.jpg") == masks.folder / "a" / "b.jpg.png"
    assert masks.path("c.jpg") == masks.folder / "c.png"
    assert masks.path("c.png") == masks.folder / "c.png"
    assert masks.path("d.jpg") is None
    write_image(masks.folder / "c.jpg.png", mask())
    assert masks.path("c.jpg") == masks.folder / "c.jpg.png"  # COLMAP's comes first


def test_points_are_covered_where_their_pixel_is_black(masks):
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    points = np.stack([x, y], -1).reshape(-1, 2).astype(np.float32)
    truth = np.zeros(SIZE[::-1], bool)
    truth[2:5, 9:20] = True
    for offset in ((0, 0), (0.49, -0.49), (-0.49, 0.49)):  # a pixel reaches half a pixel around its index
        covered = masks.covered("a/b.jpg", points + np.float32(offset))
        assert np.array_equal(covered.reshape(truth.shape), truth)
    assert np.array_equal(masks.covers("a/b.jpg"), truth)
    assert masks.covers("d.jpg") is None
    outside = np.float32([[-0.5, 3], [20.5, 3], [10, -0.5]])  # the edge of the image
    assert masks.covered("a/b.jpg", outside).tolist() == [False, False, False]


def test_matches_are_dropped_for_either_image_and_counted(masks):
    points0 = np.float32([[10, 3], [1, 1], [1, 1], [10, 3]])
    points1 = np.float32([[10, 3], [10, 3], [1, 3], [1, 3]])
    matches = RawMatches(points0, points1, np.float32([0.1, 0.2, 0.3, 0.4]))
    kept = masks.drop(("a/b.jpg", "c.jpg"), matches)
    assert kept.scores.tolist() == pytest.approx([0.2])
    assert kept.dropped == 3
    assert len(masks.drop(("d.jpg", "e.jpg"), matches)) == 4


def test_matches_on_their_way_from_a_device_are_not_waited_for(masks):
    waited = []
    matches = RawMatches(np.float32([[10, 3], [1, 1]]), np.float32([[10, 3], [10, 3]]), np.ones(2))

    def later():
        waited.append(1)
        return matches

    both = masks.over(lambda pairs, codes: [later, matches])([("a/b.jpg", "x"), ("a/b.jpg", "x")], [None, None])
    assert not waited
    assert [len(both[0]()), len(both[1]), len(waited)] == [1, 1, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_masks_of_any_kind_of_png_are_read(tmp_path, dtype):
    import cv2

    picture = np.zeros((*SIZE[::-1], 3), dtype)
    picture[:, 5:, 2] = np.iinfo(dtype).max  # red is not black
    cv2.imwrite(str(tmp_path / "a.png"), picture)
    assert Masks(tmp_path).covers("a.jpg")[0].tolist() == [True] * 5 + [False] * 16


def test_what_is_wrong_with_masks_is_said(masks, tmp_path):
    with pytest.raises(ImageError, match=r"c\.png is 21 x 10, the image c\.jpg 10 x 21: make the mask as large"):
        masks.check("c.jpg", (10, 21))
    masks.check("c.jpg", SIZE)
    assert masks.missing(["a/b.jpg", "c.jpg"]) is None
    said = masks.missing(["a/b.jpg", "d.jpg"])
    assert said.startswith("1 of 2 images have no mask and are matched everywhere")
    assert f"{tmp_path}/d.jpg.png or {tmp_path}/d.png" in said
    with pytest.raises(ImageError, match="has no mask of any of 2 images: expected"):
        masks.missing(["d.jpg", "e.jpg"])
    with pytest.raises(ImageError, match="not a folder of masks"):
        Masks(tmp_path / "nowhere")


def test_another_content_is_another_fingerprint(masks):
    before = masks.digest()
    assert masks.digest() == before
    write_image(masks.folder / "c.png", mask())
    assert masks.digest() != before


def test_masks_go_to_other_processes(masks):
    assert pickle.loads(pickle.dumps(masks)).digest() == masks.digest()
