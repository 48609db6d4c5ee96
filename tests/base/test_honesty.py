"""The suite of maps that may lie: titles say what is mapped, and each measure can be left out."""

import importlib

import numpy as np
import pytest
from PIL import Image

honesty, maps = importlib.import_module("honesty"), importlib.import_module("honesty_maps")


@pytest.fixture
def of(tmp_path, monkeypatch):
    """Two worlds of six images each, none of which is rendered."""
    found = maps.Sources(tmp_path)

    def make(name, seed):
        names = [found.pool.add(f"{name}{seed}/{k}.jpg", lambda: Image.new("RGB", (64, 48))) for k in range(6)]
        return maps.Source(names, {image: np.eye(3, 4) for image in names}, (50, 50, 32, 24))

    monkeypatch.setattr(found, "_make", make)
    return found


def test_a_title_says_what_is_mapped(of):
    one = maps.build_map(of, "thing 14101 every 2, 1 turned + kitchen at 4", held_out=True)
    first, second = one.sources
    assert len(first.names) == 3
    (turned,) = (name for name in first.names if "turned" in name)
    assert np.array_equal(first.poses[turned][:2, :2], -np.eye(2))
    assert second.names == ["kitchen0/4.jpg"]
    assert len(one.pairs) == 4 * 3 // 2
    assert not one.camera.params  # of two worlds none is known


def test_of_a_ring_some_sides_alone_are_mapped(of):
    one = maps.build_map(of, "temple 3103 only 0-1/4-5", held_out=True)
    assert one.names == [f"temple3103/{number}.jpg" for number in (0, 1, 4, 5)]


def test_images_twice_stand_where_the_first_do(of):
    one = maps.build_map(of, "fountain-P11, 2 doubled", held_out=True)
    assert len(one.names) == 8
    assert all((of.pool.folder / name).is_file() for name in one.names)
    assert len(one.sources[0].poses) == 8
    assert one.camera.params == (50, 50, 32, 24)


def test_every_title_of_the_suite_is_understood(of):
    titles = [*maps.DEVELOPMENT, *maps.HELD_OUT]
    assert len(titles) == len(set(titles)) >= 40
    for title in titles:
        assert len(maps.build_map(of, title, False).names) >= 2


def test_what_a_measure_hangs_on_is_there():
    for places in honesty.WITHOUT.values():
        for place in places:
            module, name = place.split(".")
            assert hasattr(importlib.import_module(f"pdc_sfm.colmap.mapping.{module}"), name)


def test_a_measure_is_left_out_and_back_again():
    links = importlib.import_module("pdc_sfm.colmap.mapping.links")
    limit = links.MAX_MISSED
    with honesty.leave_out("missing"):
        assert limit < 1 < links.MAX_MISSED
    assert limit == links.MAX_MISSED
    with honesty.leave_out(None):
        assert limit == links.MAX_MISSED


def test_a_row_is_silent_if_it_is_wrong_and_says_nothing(of):
    one = maps.build_map(of, "town 4204", held_out=True)
    wrong = {"registered": 6, "right": 5, "wrong": {"a": 9.0}, "verdict": "consistent", "seconds": 1.0}
    alarm = {"registered": 6, "right": 6, "wrong": {}, "verdict": "doubtful", "seconds": 1.0}
    said = honesty.summary([(one, wrong), (one, alarm)])
    assert said.startswith("2 maps: 1 wrong, 1 silently; 1 false alarms on 1 right maps; 12 registered, 11 right")


def test_what_only_one_measure_tells_is_counted():
    lines = ["little holds a to the rest: one pair", "pairs disagree on the place of b"]
    rows = [
        {"wrong": {"a": 9.0}, "says": lines},
        {"wrong": {"a": 9.0}, "says": lines[1:]},
        {"wrong": {}, "says": lines},
    ]
    found = honesty.speakers(rows)
    assert (found["cells"], found["contradictions"], found["fit"]) == ((1, 0), (2, 1), (0, 0))
