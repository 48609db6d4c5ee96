"""HEIC and WebP photographs: JPEG for COLMAP, upright pixels of HEIC, and one clear line where it cannot be read."""

import importlib.util
import io
import sys

import numpy as np
import pytest
from PIL import Image
from projections import exact_matcher, make_scene, write_images

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.cameras import camera_of_exif
from pdc_sfm.demo import PhotographSettings, run_photographs
from pdc_sfm.demo.queries import localize_in_map, open_map
from pdc_sfm.errors import ImageError
from pdc_sfm.images import list_images, read_image, read_photograph
from pdc_sfm.media.heif import convert_to_jpeg
from pdc_sfm.orientation import BY_NUMBER, UPRIGHT, orientation_of

NEEDED = pytest.mark.skipif(importlib.util.find_spec("pillow_heif") is None, reason="pillow-heif is not installed")
NAMES = [f"{k}.png" for k in range(6)]
ORIENTATION, EXIF_IFD, FOCAL_35, MAKER_NOTE = 0x0112, 0x8769, 0xA405, 0x927C


def corners():
    """An upright picture whose top is white and whose left is red."""
    image = np.zeros((60, 80, 3), np.uint8)
    image[:30] = 255
    image[:, :12] = (255, 0, 0)
    return image


def write_heic(path, upright, number=1, note=b""):
    """As a phone stores it: turned pixels, and what turns them."""
    import pillow_heif

    exif = Image.Exif()
    exif[ORIENTATION] = number
    exif.get_ifd(EXIF_IFD)[FOCAL_35] = 28
    if note:
        exif.get_ifd(EXIF_IFD)[MAKER_NOTE] = note
    stored = np.ascontiguousarray(BY_NUMBER[number].stored(upright))
    content = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(stored)).save(content, quality=98, chroma=444, exif=exif.tobytes())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.getvalue())


def pretend_absent(monkeypatch):
    """No pillow-heif on this machine."""
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@NEEDED
@pytest.mark.parametrize("number", range(1, 9))
def test_pixels_are_upright_and_nothing_turns_them_again(tmp_path, number):
    write_heic(tmp_path / "a.heic", corners(), number)
    found = read_photograph(tmp_path / "a.heic")
    assert found.pixels.shape == (60, 80, 3)
    assert np.abs(found.pixels.astype(int) - corners()).mean() < 4  # compression
    assert found.orientation == UPRIGHT


@NEEDED
@pytest.mark.parametrize("number", [1, 3, 6, 8])
def test_the_jpeg_for_colmap_is_upright_and_knows_the_lens(tmp_path, number):
    write_heic(tmp_path / "a.heic", corners(), number, note=bytes(70_000))  # more than EXIF of a JPEG can hold
    convert_to_jpeg(tmp_path / "a.heic", tmp_path / "a.jpg")
    assert np.abs(read_image(tmp_path / "a.jpg").astype(int) - corners()).mean() < 4
    assert orientation_of((tmp_path / "a.jpg").read_bytes()) == UPRIGHT
    camera = camera_of_exif(tmp_path / "a.jpg")
    # 28 mm of a film of 24 x 36 mm: 80 pixels by 60 have the diagonal of 43.3 mm
    assert camera.mean_focal_length() == pytest.approx(28 / np.hypot(24, 36) * 100, rel=0.05)


@NEEDED
def test_a_folder_of_a_phone_becomes_a_map_and_is_localized_in(tmp_path):
    scene = make_scene(NAMES, points=500)
    write_images(scene, tmp_path / "drawn")
    for k, name in enumerate(NAMES):
        suffix = (".HEIC", ".heic", ".jpg")[k % 3]  # some phones call a HEIC photograph JPEG
        write_heic(tmp_path / "photos" / name.replace(".png", suffix), read_image(tmp_path / "drawn" / name))
    assert len(list_images(tmp_path / "photos")) == 6
    renamed = [name.replace(".png", ".jpg") for name in NAMES]
    jpegs = make_scene(renamed, points=500)
    settings = PhotographSettings(report=False)
    for _ in range(2):  # and once more, which finds all done
        folder = run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=exact_matcher(jpegs))
    assert list_images(tmp_path / "run" / "images") == renamed
    assert folder.record["metrics"][0]["registered"] == 6
    assert all(Image.open(tmp_path / "run" / "images" / name).format == "JPEG" for name in renamed)

    (tmp_path / "queries").mkdir()
    content = (tmp_path / "photos" / "0.HEIC").read_bytes()
    (tmp_path / "queries" / "damaged.heic").write_bytes(content[: len(content) // 2])
    result, rows = localize_in_map(
        open_map(tmp_path / "run"), tmp_path / "queries", tmp_path / "out", match=None, network=object()
    )
    assert "damaged.jpg is not a readable image" in rows["damaged.heic"].reason
    assert not result.poses


def write_webp(path, upright, number=1):
    exif = Image.Exif()
    exif[ORIENTATION] = number
    exif.get_ifd(EXIF_IFD)[FOCAL_35] = 28
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = np.ascontiguousarray(BY_NUMBER[number].stored(upright))
    Image.fromarray(stored).save(path, "WEBP", lossless=True, exif=exif)


@pytest.mark.parametrize("number", [1, 6])
def test_a_webp_photograph_keeps_its_stored_pixels_and_what_it_says(tmp_path, number):
    write_webp(tmp_path / "a.webp", corners(), number)
    convert_to_jpeg(tmp_path / "a.webp", tmp_path / "a.jpg")
    assert np.abs(read_image(tmp_path / "a.jpg").astype(int) - BY_NUMBER[number].stored(corners())).mean() < 4
    assert orientation_of((tmp_path / "a.jpg").read_bytes()) == BY_NUMBER[number]
    assert camera_of_exif(tmp_path / "a.jpg").mean_focal_length() == pytest.approx(
        28 / np.hypot(24, 36) * 100, rel=0.05
    )


def test_a_folder_of_webp_becomes_a_map(tmp_path):
    write_images(make_scene(NAMES, points=500), tmp_path / "drawn")
    for k, name in enumerate(NAMES):
        suffix = (".webp", ".jpg")[k % 2]  # and one that was renamed
        write_webp(tmp_path / "photos" / name.replace(".png", suffix), read_image(tmp_path / "drawn" / name))
    jpegs = make_scene([name.replace(".png", ".jpg") for name in NAMES], points=500)
    settings = PhotographSettings(report=False)
    folder = run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=exact_matcher(jpegs))
    assert folder.record["metrics"][0]["registered"] == 6


@NEEDED
def test_a_damaged_file_says_so(tmp_path):
    write_heic(tmp_path / "a.heic", corners())
    content = (tmp_path / "a.heic").read_bytes()
    (tmp_path / "a.heic").write_bytes(content[: len(content) // 2])
    with pytest.raises(ImageError, match=r"a\.heic is not a readable image"):
        read_image(tmp_path / "a.heic")


def test_without_the_reader_one_line_names_what_to_install(tmp_path, monkeypatch, capsys):
    pretend_absent(monkeypatch)
    (tmp_path / "photos").mkdir()
    for k in range(3):
        (tmp_path / "photos" / f"{k}.HEIC").write_bytes(b"\0\0\0\x18ftypheic" + bytes(100))
    assert main(["map", str(tmp_path / "photos"), "--output", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")
    assert "photos holds 3 HEIC photographs (first: 0.HEIC): to read them, pip install 'pdc-sfm[heic]'" in line
    with pytest.raises(ImageError, match=r"pip install 'pdc-sfm\[heic\]'"):
        read_image(tmp_path / "photos" / "0.HEIC")
