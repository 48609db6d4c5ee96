"""Photographs taken soon after each other or near each other, by EXIF as cameras write it."""

import datetime

import numpy as np
import pytest
from PIL import Image

from pdc_sfm.engine.nearby import Taken, place_pairs, read_taken, time_pairs


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


def test_the_next_in_time_whatever_their_names():
    start = datetime.datetime(2024, 5, 1)
    taken = {name: Taken(start + datetime.timedelta(hours=k)) for k, name in enumerate("dbac")} | {"x": Taken()}
    assert time_pairs(taken, 1) == [("d", "b"), ("b", "a"), ("a", "c")]
    assert len(time_pairs(taken, 2)) == 5
    assert time_pairs(taken, 0) == []


def test_the_nearest_on_the_earth():
    """At 60 degrees north a degree of longitude is half as long as one of latitude; 180 degrees east is 180 west."""
    places = {"a": (60.0, 10.0), "north": (60.6, 10.0), "east": (60.0, 11.0), "edge": (0, 179.99), "over": (0, -179.99)}
    taken = {name: Taken(place=place) for name, place in places.items()} | {"x": Taken()}
    pairs = place_pairs(taken, 1)
    assert ("a", "east") in pairs
    assert ("edge", "over") in pairs
    assert not any("x" in pair for pair in pairs)
    assert place_pairs({"a": Taken(place=(1.0, 1.0))}, 3) == []
    assert place_pairs(taken, 0) == []
