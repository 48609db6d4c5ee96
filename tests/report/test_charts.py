"""Charts place their marks where the numbers are."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pdc_sfm.report.charts import dots, histogram, lines
from pdc_sfm.report.gallery import color_wheel
from pdc_sfm.report.model3d import upright


def parsed(svg):
    return ElementTree.fromstring(svg)


def test_a_bar_is_as_high_as_its_count():
    bars = parsed(histogram([1, 1, 1, 9], "x", "y", bins=2)).findall("rect")
    heights = [float(bar.get("height")) for bar in bars]
    assert heights[0] == pytest.approx(3 * heights[1], rel=0.01)
    assert bars[0].find("title").text.endswith(": 3")


@pytest.mark.parametrize("largest", [4000, 12_500])
def test_the_last_figure_of_an_axis_is_not_cut_off(largest):
    svg = parsed(histogram([1, largest], "x", "y"))
    right = float(svg.get("viewBox").split()[2])
    for figure in svg.findall("text"):
        if figure.get("text-anchor") == "middle" and figure.get("x"):
            assert float(figure.get("x")) + len(figure.text) * 3.6 <= right  # a figure is 7.2 wide


def test_track_lengths_have_a_bar_each_and_a_last_one_for_the_rest():
    titles = [
        t.text for t in parsed(histogram([2] * 500 + [3] * 495 + [4] * 4 + [50], "x", "y", whole=True)).iter("title")
    ]
    assert titles[:2] == ["2: 500", "3: 495"]
    assert titles[-1].startswith("5 or more")


def test_lines_go_through_their_points():
    points = parsed(lines({"a": ([0, 100], [0, 1])}, "x", "y", top=1)).find("polyline").get("points").split()
    (x0, y0), (x1, y1) = (tuple(map(float, p.split(","))) for p in points)
    assert x1 > x0
    assert y1 < y0  # y points down


def test_dots_are_ordered_by_error_and_no_result_is_hollow_at_the_right():
    chart = parsed(dots({"q": {"ours": 0.1, "SIFT": 1.0}, "r": {"ours": None}}, "m", [0.25]))
    marks = {c.find("title").text: c for c in chart.findall("circle") if c.find("title") is not None}
    at = {name: float(mark.get("cx")) for name, mark in marks.items()}
    assert at["q, ours: 0.1"] < at["q, SIFT: 1"] < at["r, ours: no pose"]
    assert marks["r, ours: no pose"].get("fill") == "var(--card)"


def test_the_name_of_an_axis_is_left_of_all_ticks():
    texts = parsed(lines({"a": ([0, 1], [0, 1])}, "x", "points", top=12_500)).findall("text")
    name = next(t for t in texts if t.text == "points")
    right_of_name = float(name.get("transform").split("(")[1].split()[0]) + 4  # below the baseline of 12 px letters
    ticks = [t for t in texts if t.get("text-anchor") == "end"]
    assert "12.5k" in [t.text for t in ticks]
    assert min(float(t.get("x")) - 7 * len(t.text) for t in ticks) > right_of_name  # figures are less than 7 px wide


def test_names_are_escaped_in_charts():
    assert "<script>" not in dots({"<script>": {"ours": 1.0}}, "m", [])
    assert re.search("&lt;script&gt;", dots({"<script>": {"ours": 1.0}}, "m", []))


def test_the_wheel_is_white_outside_and_in_the_middle():
    wheel = color_wheel(101)
    assert (wheel[0, 0] == 255).all()
    assert (wheel[50, 50] > 245).all()
    assert wheel[50, 100].min() < 60  # full color at the rim


def test_the_model_stands_upright_and_is_seen_from_behind_the_cameras():
    # a camera that looks along x with z up: rows of its rotation are right (-y), down (-z), forward (x)
    pose = np.array([[0, -1.0, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0]])
    world = upright(pose[None])
    assert world @ [0, 0, 1] == pytest.approx([0, 0, 1])
    assert world @ [1, 0, 0] == pytest.approx([0, 1, 0])
    assert np.linalg.det(world) == pytest.approx(1)
