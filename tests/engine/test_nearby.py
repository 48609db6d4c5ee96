"""Photographs taken soon after each other or near each other."""

import datetime

from pdc_sfm.engine.nearby import place_pairs, time_pairs
from pdc_sfm.exif import Taken
from pdc_sfm.store.positions import positions_of_taken


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
    places = positions_of_taken(taken).cartesian()
    pairs = place_pairs(places, 1)
    assert ("a", "east") in pairs
    assert ("edge", "over") in pairs
    assert not any("x" in pair for pair in pairs)
    assert place_pairs({"a": places["a"]}, 3) == []
    assert place_pairs(places, 0) == []
