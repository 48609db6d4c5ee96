"""EXIF orientation: the network sees the upright picture, all pixels are counted as they are stored."""

import struct

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.images import read_image, read_photograph, write_image
from pdc_sfm.matcher import PairSettings, load_matcher, match_images
from pdc_sfm.matches.snap import SnapSettings
from pdc_sfm.orientation import BY_NUMBER, UPRIGHT, orientation_of

NUMBERS = range(1, 9)
# where EXIF says that the 0th row and the 0th column of the stored pixels are in the upright picture
FIRST_ROW = {1: "top", 2: "top", 3: "bottom", 4: "bottom", 5: "left", 6: "right", 7: "right", 8: "left"}
FIRST_COLUMN = {1: "left", 2: "right", 3: "right", 4: "left", 5: "top", 6: "top", 7: "bottom", 8: "bottom"}
SIDES = {
    "top": np.s_[0, 1:-1],
    "bottom": np.s_[-1, 1:-1],
    "left": np.s_[1:-1, 0],
    "right": np.s_[1:-1, -1],
}


def exif(number, order="<"):
    """A TIFF header and a directory of two entries, the second the orientation."""
    header = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    entries = struct.pack(order + "HHIHH", 0x0100, 3, 1, 7, 0) + struct.pack(order + "HHIHH", 0x0112, 3, 1, number, 0)
    return header + struct.pack(order + "H", 2) + entries + struct.pack(order + "I", 0)


def with_exif(path, block):
    """Put EXIF into an image file."""
    data = path.read_bytes()
    if path.suffix == ".jpg":
        block = b"Exif\0\0" + block
        data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + data[2:]
    elif path.suffix == ".png":
        import zlib

        chunk = b"eXIf" + block
        data = data[:33] + struct.pack(">I", len(block)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + data[33:]
    else:
        data += b"EXIF" + struct.pack("<I", len(block)) + block + b"\0" * (len(block) % 2)
        data = data[:4] + struct.pack("<I", len(data) - 8) + data[8:]
    path.write_bytes(data)


def scene(seed=0, size=(320, 256)):
    """A picture of smooth blobs and its shift."""
    coarse = torch.rand(1, 3, size[1] // 8 + 4, size[0] // 8 + 4, generator=torch.Generator().manual_seed(seed))
    large = torch.nn.functional.interpolate(coarse, scale_factor=8, mode="bicubic")[0].clamp(0, 1)
    image = (255 * large).byte().permute(1, 2, 0).numpy()
    return image[: size[1], : size[0]].copy(), image[8 : 8 + size[1], 16 : 16 + size[0]].copy()


def saved(folder, name, upright, number):
    """An image file whose pixels are stored in another order than it is seen."""
    write_image(folder / name, np.ascontiguousarray(BY_NUMBER[number].stored(upright)))
    with_exif(folder / name, exif(number))
    return folder / name


@pytest.mark.parametrize("number", NUMBERS)
def test_rows_and_columns_are_where_exif_says(number):
    stored = np.zeros((5, 7), int)
    stored[0, 1:-1], stored[1:-1, 0] = 1, 2
    upright = BY_NUMBER[number].upright(stored)
    assert (upright[SIDES[FIRST_ROW[number]]] == 1).all()
    assert (upright[SIDES[FIRST_COLUMN[number]]] == 2).all()
    assert np.array_equal(BY_NUMBER[number].stored(upright), stored)


@pytest.mark.parametrize("number", NUMBERS)
def test_points_go_back_to_the_stored_pixels(number):
    orientation, stored = BY_NUMBER[number], np.arange(35).reshape(5, 7)
    upright = orientation.upright(stored)
    size = upright.shape[::-1]
    assert orientation.stored_size(size) == (7, 5)
    x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    points = orientation.stored_points(np.stack((x, y), -1), size)
    assert np.array_equal(stored[points[..., 1], points[..., 0]], upright)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_files_of_all_kinds_are_read_as_stored_with_their_orientation(tmp_path, suffix, order):
    image = scene()[0][:48, :64]
    for number in NUMBERS:
        path = tmp_path / f"{number}{suffix}"
        write_image(path, image)
        with_exif(path, exif(number, order))
        photograph = read_photograph(path)
        assert photograph.orientation == BY_NUMBER[number]
        assert photograph.pixels.shape == image.shape
        assert np.array_equal(photograph.pixels, read_image(path))


def test_what_is_no_orientation_is_upright(tmp_path):
    whole = b"\xff\xd8\xff\xe1" + struct.pack(">H", 60) + b"Exif\0\0" + exif(6)
    assert orientation_of(whole) == BY_NUMBER[6]
    assert all(orientation_of(whole[:length]) in (UPRIGHT, BY_NUMBER[6]) for length in range(len(whole)))
    assert orientation_of(whole[:40]) == UPRIGHT
    for number in (0, 9, 77):
        assert orientation_of(whole.replace(exif(6), exif(number))) == UPRIGHT
    for content in (
        b"",
        b"\xff\xd8",
        b"\x89PNG\r\n\x1a\n",
        b"RIFF\0\0\0\0WEBP",
        b"II*\0" + exif(6)[4:],
        b"P6 4 4 255 ",
    ):
        assert orientation_of(content) == UPRIGHT


@pytest.fixture(scope="module")
def matcher():
    return load_matcher(settings=PairSettings(DenseSettings(min_side=256, method="direct")), device="cpu")


@pytest.mark.parametrize("number", NUMBERS)
def test_matches_land_in_stored_pixels_and_are_as_many_as_upright(tmp_path, matcher, number):
    first, second = scene()
    plain = match_images(first, second, matcher=matcher)
    other = 1 + (number + 2) % 8
    files = saved(tmp_path, "a.png", first, number), saved(tmp_path, "b.png", second, other)
    found = match_images(*files, matcher=matcher)
    assert len(found.matches) == len(plain.matches) > 1000
    wanted = [
        BY_NUMBER[n].stored_points(points, (320, 256))
        for n, points in ((number, plain.matches.keypoints0), (other, plain.matches.keypoints1))
    ]
    distances, _ = cKDTree(np.hstack(wanted)).query(np.hstack((found.matches.keypoints0, found.matches.keypoints1)))
    assert distances.max() < 0.01
    for estimate, same in ((found.forward, plain.forward), (found.backward, plain.backward)):
        assert np.sort(estimate.confidence.ravel()) == pytest.approx(np.sort(same.confidence.ravel()), abs=1e-6)
    assert found.forward.reference_size == read_image(files[0]).shape[1::-1]
    codes = [matcher.encode(read_photograph(path)) for path in files]
    assert len(matcher.match(*codes)) == len(plain.matches)


def test_given_keypoints_of_stored_pixels_are_matched(tmp_path, matcher):
    first, second = scene()
    files = saved(tmp_path, "a.png", first, 6), saved(tmp_path, "b.png", second, 3)
    codes = [matcher.encode(read_photograph(path)) for path in files]
    points0 = np.stack(np.meshgrid(np.arange(40, 280, 20.0), np.arange(40, 216, 20.0)), -1).reshape(-1, 2)
    points1 = points0 - (16, 8)  # of the upright pictures
    stored0 = BY_NUMBER[6].stored_points(points0, (320, 256))
    stored1 = BY_NUMBER[3].stored_points(points1, (320, 256))
    found = matcher.match_keypoints(*codes, stored0, stored1).raw(stored0, stored1)
    assert len(found) > 0.8 * len(points0)
    place = {tuple(point): n for n, point in enumerate(stored0.tolist())}
    rows = [place[tuple(point)] for point in found.keypoints0.tolist()]
    assert np.mean(np.abs(stored1[rows] - found.keypoints1).max(1) < 1) > 0.95
    assert SnapSettings().threshold > 0  # what is kept is sure


def test_a_list_of_turned_files_is_matched_as_upright_ones(tmp_path):
    from pdc_sfm.store.readers import open_features

    first, second = scene()
    settings = MatchingSettings(dense=DenseSettings(min_side=256, method="direct"), device="cpu", readers=0)
    counts = {}
    for number in (1, 5, 8):
        images = tmp_path / str(number)
        images.mkdir()
        for name, image in (("a.png", first), ("b.png", second)):
            saved(images, name, image, number)
        result = match_pairs(images, [("a.png", "b.png")], tmp_path / f"out{number}", settings)
        with open_features(result.features) as file:
            keypoints = file.keypoints("a.png").points
        upright = BY_NUMBER[number].stored_size((320, 256))
        assert (keypoints <= np.subtract(upright, 0.5)).all()
        assert keypoints[:, 0].max() > 0.8 * upright[0]
        counts[number] = len(keypoints)
    assert counts[5] == pytest.approx(counts[1], rel=0.05)
    assert counts[8] == pytest.approx(counts[1], rel=0.05)


@pytest.mark.parametrize("number", [2, 6])
def test_codes_for_retrieval_are_of_the_upright_picture(tmp_path, number):
    from pdc_sfm.retrieval.codes import _read_small

    first = scene()[0]
    expected, _ = _read_small(saved(tmp_path, "plain.png", first, 1))
    found, size = _read_small(saved(tmp_path, "turned.png", first, number))
    assert np.array_equal(found, expected)
    assert size == BY_NUMBER[number].stored_size((320, 256))
