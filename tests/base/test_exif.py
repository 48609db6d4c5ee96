"""When and where photographs were taken, by EXIF as cameras write it."""

import datetime

import numpy as np
import pytest
from PIL import Image

from pdc_sfm.exif import Taken, read_taken
from pdc_sfm.store.positions import positions_of_exif


def photograph(path, time=None, place=None, sides="NE"):
    """A JPEG with EXIF; `place` is degrees, minutes and seconds of latitude and longitude."""
    image, exif = Image.fromarray(np.zeros((16, 16, 3), np.uint8)), Image.Exif()
    if time is not None:
        exif.get_ifd(0x8769)[0x9003] = time
    if place is not None:
        exif.get_ifd(0x8825).update({1: sides[0], 2: place[0], 3: sides[1], 4: place[1]})
    image.save(path, exif=exif)
    return path


def test_time_and_place_are_read(tmp_path):
    path = photograph(tmp_path / "a.jpg", "2024:05:01 12:30:05", ((50, 46, 30.0), (6, 5, 0.0)), "NW")
    found = read_taken(path)
    assert found.time == datetime.datetime(2024, 5, 1, 12, 30, 5)
    assert found.place == pytest.approx((50 + 46 / 60 + 30 / 3600, -(6 + 5 / 60)))
    assert read_taken(photograph(tmp_path / "b.jpg", place=((33, 0, 0), (151, 0, 0)), sides="SE")).place[0] < 0


def test_files_that_say_nothing_or_nonsense(tmp_path):
    (tmp_path / "text.jpg").write_text("not an image")
    assert read_taken(tmp_path / "text.jpg") == read_taken(tmp_path / "absent.jpg") == Taken()
    assert read_taken(photograph(tmp_path / "a.jpg", "0000:00:00 00:00:00")) == Taken()
    assert read_taken(photograph(tmp_path / "b.jpg", place=((0, 0, 0), (0, 0, 0)))) == Taken()  # no fix
    assert read_taken(photograph(tmp_path / "c.jpg", place=((91, 0, 0), (0, 0, 0)))) == Taken()
    assert read_taken(photograph(tmp_path / "d.jpg")) == Taken()


def test_altitude_and_error_are_read(tmp_path):
    path = tmp_path / "a.jpg"
    exif = Image.Exif()
    exif.get_ifd(0x8825).update({1: "N", 2: (50, 0, 0), 3: "E", 4: (6, 0, 0), 5: b"\1", 6: 12.5, 31: 4.0})
    Image.new("RGB", (16, 16)).save(path, exif=exif)
    found = read_taken(path)
    assert (found.altitude, found.error) == (-12.5, 4.0)  # below the sea
    photograph(tmp_path / "b.jpg", place=((50, 0, 0), (6, 0, 0)))
    photograph(tmp_path / "c.jpg")
    positions = positions_of_exif(tmp_path, ["a.jpg", "b.jpg", "c.jpg"])
    assert positions.geographic
    assert positions.places["a.jpg"] == (50, 6, -12.5)
    assert np.isnan(positions.places["b.jpg"][2])
    assert positions.sigmas == {"a.jpg": (4.0, 8.0)}
    assert "c.jpg" not in positions.places
