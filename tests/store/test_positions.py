"""Files of positions and of control points: what they may look like, and what is refused in one line."""

import time

import numpy as np
import pytest

from pdc_sfm.errors import FormatError
from pdc_sfm.store.control import read_control
from pdc_sfm.store.positions import Positions, read_positions


def written(tmp_path, text, name="positions.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize(
    "text",
    [
        "name lat lon alt sigma\na.jpg 50.1 6.2 300 2\nb.jpg 50.1001 6.2 301 2\n",
        "# name lat lon alt sigma\na.jpg 50.1 6.2 300 2\n\nb.jpg 50.1001 6.2 301 2\n",
        "# taken in May\nImage,Longitude,Latitude,Altitude,Accuracy\na.jpg,6.2,50.1,300,2\nb.jpg,6.2,50.1001,301,2\n",
        "filename;latitude;longitude;height;std\r\na.jpg;50.1;6.2;300;2\r\nb.jpg;50.1001;6.2;301;2\r\n",
        "a.jpg\t50.1\t6.2\t300\t2\nb.jpg\t50.1001\t6.2\t301\t2\n",
    ],
)
def test_geographic_positions_in_the_forms_that_people_have(tmp_path, text):
    found = read_positions(written(tmp_path, text))
    assert found.geographic
    assert found.places == {"a.jpg": (50.1, 6.2, 300), "b.jpg": (50.1001, 6.2, 301)}
    assert found.sigmas == {"a.jpg": (2, 2), "b.jpg": (2, 2)}


def test_positions_in_a_frame_of_ones_own(tmp_path):
    found = read_positions(written(tmp_path, "name x y z sigma sigma_z\na.jpg 1 2 3 .1 .3\nb.jpg 4 5 6\n"))
    assert not found.geographic
    assert found.places["b.jpg"] == (4, 5, 6)
    assert found.sigmas == {"a.jpg": (0.1, 0.3)}
    assert not found.remarks


def test_without_column_names_it_is_guessed_and_said(tmp_path):
    metres = read_positions(written(tmp_path, "a.jpg 1 2 3\nb.jpg 40 5 6\n"))
    assert not metres.geographic
    assert "its numbers are taken for x, y, z" in metres.remarks[0]
    degrees = read_positions(written(tmp_path, "a.jpg 50.10001 6.2 300\nb.jpg 50.10002 6.2 300\n"))
    assert degrees.geographic
    assert "latitude, longitude, altitude" in degrees.remarks[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no positions"),
        ("name lat lon alt\n", "holds no positions"),
        ("name lat lon alt\na.jpg here there 3\n", "line 2: expected a name and numbers"),
        (
            "name lat lon alt\na.jpg 120.5 50 3\n",
            "line 2: a latitude of 120.5 cannot be: are latitude and longitude swapped?",
        ),
        ("name lat lon alt\na.jpg 120.5 190 3\n", "no place on the earth"),
        ("name lat lon alt\na.jpg 1 1 3\na.jpg 1 1 4\n", "line 3: a.jpg has a position already"),
        ("name lat lon alt sigma\na.jpg 1 1 3 -1\n", "line 2: sigma, in metres, must be positive"),
        ("name x y\na.jpg 1 1\n", "needed are `name lat lon alt` or `name x y z`"),
        ("name x y z\na.jpg 1 inf 3\n", "line 2: expected a name and numbers for x y z"),
    ],
)
def test_bad_files_of_positions(tmp_path, text, said):
    with pytest.raises(FormatError) as error:
        read_positions(written(tmp_path, text))
    assert said in str(error.value)


def test_an_image_may_be_named_without_its_folder_if_that_is_clear(tmp_path):
    found = read_positions(written(tmp_path, "name x y z\na.jpg 1 1 1\nc.jpg 2 2 2\nd/b.jpg 3 3 3\n"))
    chosen = found.of(["d/a.jpg", "d/b.jpg", "d/c.jpg", "e/c.jpg"])
    assert {name: place[0] for name, place in chosen.places.items()} == {"d/a.jpg": 1, "d/b.jpg": 3}


def test_control_points_and_distances(tmp_path):
    text = """
    frame geographic
    point corner 50.1 6.2 300 0.05   # with its sigma
    seen corner a.jpg 10.5 20
    seen corner b.jpg 11 21
    seen door a.jpg 1 2
    distance corner door 3.25
    """
    found = read_control(written(tmp_path, text))
    assert found.geographic
    assert (found.points, found.sigmas) == ({"corner": (50.1, 6.2, 300)}, {"corner": 0.05})
    assert found.seen["corner"] == {"a.jpg": (10.5, 20), "b.jpg": (11, 21)}
    assert found.distances == {("corner", "door"): (3.25, 0.02)}
    assert found.renamed({"a.jpg": "x/a.jpg"}).seen["door"] == {"x/a.jpg": (1, 2)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no `point` and no `distance`"),
        ("point a 1 2\n", "line 1: expected `point NAME LAT LON ALT [SIGMA], or point NAME X Y Z [SIGMA]`"),
        ("point a 1 2 3\nseen a a.jpg 1 1\n", "the point a needs two lines `seen` at least"),
        ("distance a a 3\n", "line 1: expected `distance NAME NAME METRES [SIGMA]`"),
        ("distance a b 0\n", "line 1: expected `distance"),
        ("gcp a 1 2 3\n", "line 1: expected `frame geographic or frame local; point"),
        ("frame geographic\npoint a 99 2 3\nseen a a.jpg 1 1\nseen a b.jpg 1 1\n", "are they swapped?"),
        ("point a nan 2 3\n", "line 1: expected"),
    ],
)
def test_bad_files_of_control(tmp_path, text, said):
    with pytest.raises(FormatError) as error:
        read_control(written(tmp_path, text))
    assert said in str(error.value)


def test_the_nearest_are_found_in_any_frame(tmp_path):
    found = read_positions(written(tmp_path, "name x y z\na 0 0 0\nb 3 0 4\n")).cartesian()
    assert np.linalg.norm(found["a"] - found["b"]) == 5


def test_positions_of_a_drones_day_are_found_at_once():
    names = [f"flight/{number:06d}.jpg" for number in range(40_000)]
    given = Positions(dict.fromkeys(names, (1.0, 2.0, 3.0)), {}, False, "a")
    begun = time.process_time()
    assert len(given.of(names).places) == len(names)
    assert time.process_time() - begun < 5  # a second; each name looked for in a list: half a minute
