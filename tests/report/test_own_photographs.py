"""The report on photographs whose cameras stand anywhere: what is far off sets no zoom, all names can be read."""

import re
import shutil

import numpy as np
import pytest
from run_maker import DATABASE, ShiftMatcher, make_run

from pdc_sfm.report import write_report
from pdc_sfm.report.model3d import frame
from pdc_sfm.report.statistics import spread_out
from pdc_sfm.store.pair_lists import read_pairs, write_pairs
from pdc_sfm.store.readers import open_matches


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "finished"
    make_run(folder)
    return folder


def test_far_cameras_and_stray_points_do_not_set_the_zoom():
    random = np.random.default_rng(0)
    points = np.concatenate([random.uniform(-1, 1, (1000, 3)), random.uniform(-100, 100, (10, 3))])
    near, far = random.uniform(-1.5, 1.5, (6, 3)), np.array([[50.0, 0, 0], [0, 80, 0], [0, 0, 60]])
    seen = frame(points, np.concatenate([near, far]))
    assert seen.near.tolist() == [True] * 6 + [False] * 3
    assert seen.radius < 3
    assert np.linalg.norm(seen.center) < 1


def test_most_cameras_are_in_the_first_view_however_far_they_are():
    points = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    ring = 10 * np.stack([np.cos(np.arange(8)), np.sin(np.arange(8)), np.zeros(8)], 1)
    assert frame(points, ring * np.linspace(1, 1.01, 8)[:, None]).near.sum() >= 4


def test_images_of_the_graph_stand_apart_even_where_their_cameras_do_not():
    size = np.array([620, 446])
    crowd = np.concatenate([np.full((20, 2), 300.0), [[24, 24], [24, 24], [596, 422]]])
    places = spread_out(crowd, 24, 24, size)
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1) + 1e9 * np.eye(len(places))
    assert distances.min() > 20
    assert (places >= 24).all()
    assert (places <= size - 24).all()


def test_every_image_of_the_graph_has_a_number_and_its_whole_name_beside_it(finished):
    text = write_report(finished, pairs=1, matcher=ShiftMatcher()).read_text()
    listed = re.search(r'<ol class="names">(.*?)</ol>', text).group(1)
    assert re.findall("<li>(.*?)</li>", listed) == DATABASE
    assert re.findall(r'<text class="number"[^>]*>(\d+)<', text) == [str(k) for k in range(1, len(DATABASE) + 1)]


def test_the_matches_of_all_pairs_are_those_the_model_was_made_of(finished):
    with open_matches(finished / "matches.h5") as file:
        total = sum(len(file.matches(*pair)[0]) for pair in read_pairs(finished / "pairs.txt"))
    text = write_report(finished, pairs=1, matcher=ShiftMatcher()).read_text()
    assert f"{total:,} matches between keypoints" in text
    assert "raw matches" not in text


def test_images_that_the_model_lacks_are_named_first(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    pairs = read_pairs(tmp_path / "run" / "pairs.txt")
    write_pairs(tmp_path / "run" / "pairs.txt", [*pairs, (DATABASE[0], "db/lost&found.jpg")])
    text = write_report(tmp_path / "run", pairs=1, matcher=ShiftMatcher()).read_text()
    overview = text[text.index('id="overview"') : text.index('id="model"')]
    assert "Not in the model:</b> db/lost&amp;found.jpg<" in overview
    assert "Not in the model" not in write_report(finished, pairs=1, matcher=ShiftMatcher()).read_text()
