"""Photographs added to the map that answers, by a request."""

import io
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from plane_map import poses
from serving import running, tell_brightness, wait_until

from pdc_sfm.client import ServerError
from pdc_sfm.demo.queries import open_map
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.serve.additions import Additions
from pdc_sfm.serve.resident_map import map_state


def noise():
    content = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (120, 160, 3), np.uint8)).save(content, "PNG")
    return content.getvalue()


def test_a_photograph_is_added_while_others_ask_and_stays_after_a_stop(make_server, ask, wall):
    """The whole road: queued, matched, in the map, which answers; the map that was given stays as it was."""
    before = {path.name: path.read_bytes() for path in (wall / "sfm").iterdir() if path.is_file()}
    with running(make_server(additions=True)) as url:
        client = ask(url)
        number = client.add([wall / "queries" / "query.png"], name="mine")
        while (found := client.request(number)).state in ("queued", "running"):
            assert len(client.map().images) in (4, 5)
            assert client.retrieve(wall / "queries" / "query.png", top=1).images  # none is refused meanwhile
        assert found.state == "done", found.error
        (name,) = found.answer["added"]
        assert (found.answer["images"], found.answer["left_out"]) == (5, [])
        (image,) = [one for one in client.map().images if one.name == name]
        metres, degrees = pose_error(np.array(image.cam_from_world), poses()["query.png"])
        assert metres < 0.1  # of 5 to the wall
        assert degrees < 1
        assert client.map().map == found.answer["map"]
    assert {path.name: path.read_bytes() for path in (wall / "sfm").iterdir() if path.is_file()} == before
    with running(make_server(tell_brightness, additions=True)) as url:
        assert len(ask(url).map().images) == 5
    with running(make_server(tell_brightness)) as url:  # without additions the map that was given answers
        assert len(ask(url).map().images) == 4
        with pytest.raises(ServerError, match=r"start it with serve\.additions=true"):
            ask(url).add([noise()])


def test_what_shows_another_place_is_not_added(make_server, ask):
    with running(make_server(tell_brightness, additions=True)) as url:
        client = ask(url)
        number = client.add([noise()])
        wait_until(lambda: client.request(number).state not in ("queued", "running"))
        found = client.request(number)
        assert (found.state, found.status) == ("failed", 422), found
        assert len(client.map().images) == 4


@pytest.fixture
def additions(wall, queries, tmp_path):
    return Additions(lambda: open_map(wall / "sfm"), map_state, tmp_path, queries.matching)


def test_an_addition_that_was_killed_goes_on(additions, wall, tmp_path):
    content, told = (wall / "queries" / "query.png").read_bytes(), []

    class Killed(BaseException):
        """As a kill: nothing is tidied up."""

    def until_it_is_matched(stage, done, total):
        told.append(stage)
        if stage == "extend":
            raise Killed

    with pytest.raises(Killed):
        additions.add("n", [content], until_it_is_matched)
    assert additions.current() == open_map(wall / "sfm")
    journal = {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "maps" / "n" / "matches.raw").glob("*.matches")
    }
    found = additions.add("n", [content], lambda *_: None)
    assert found.added == ["added-n-0.png"]
    assert {k: (tmp_path / "maps" / "n" / "matches.raw" / k).stat().st_mtime_ns for k in journal} == journal
    assert additions.current().model == tmp_path / "maps" / "n" / "sfm"


def test_an_addition_that_was_killed_before_its_answer_was_kept_stays_in_the_map(additions, wall, tmp_path):
    """The kill falls while the map is loaded, which takes memory and time."""
    content, before = (wall / "queries" / "query.png").read_bytes(), open_map(wall / "sfm")
    first = additions.add("n", [content], lambda *_: None)
    assert additions.current() != before
    assert additions.add("n", [content], lambda *_: None) == first
    assert additions.current().model == tmp_path / "maps" / "n" / "sfm"


def test_a_map_given_anew_takes_the_place_of_the_one_with_additions(additions, wall, tmp_path):
    given, state = open_map(wall / "sfm"), map_state(open_map(wall / "sfm"))
    shutil.copytree(wall / "sfm", tmp_path / "maps" / "n" / "sfm")
    shutil.copytree(wall / "images", tmp_path / "maps" / "n" / "images")
    shutil.copy(given.features, tmp_path / "maps" / "n" / "features.h5")
    for content, with_additions in {
        json.dumps({"map": "n", "given": state}): True,
        json.dumps({"map": "../../maps/n", "given": state}): True,  # whatever is written there, it is in this folder
        json.dumps({"map": "n", "given": "another"}): False,
        json.dumps({"map": "gone", "given": state}): False,
        "[": False,  # damaged
        "[]": False,
    }.items():
        (tmp_path / "map.json").write_text(content)
        assert (additions.current() != given) == with_additions, content
