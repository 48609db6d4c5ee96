"""What the search finds and what it costs, shown with a network that is exact within known limits."""

import cv2
import numpy as np
import pytest

from pdc_sfm.dense import view_search
from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.view_search import ViewSearch, is_far
from pdc_sfm.dense.views import View
from pdc_sfm.errors import SettingsError
from pdc_sfm.pixels import transform

SIZE = (264, 256)


def camera(degrees: float = 0.0, zoom: float = 1.0, shift=(0.0, 0.0)) -> np.ndarray:
    """scene_from_image of a camera turned about the scene's center and seeing it `zoom` times larger."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, zoom]])
    to_center = np.array([[1, 0, -SIZE[0] / 2], [0, 1, -SIZE[1] / 2], [0, 0, 1.0]])
    from_center = np.array([[1, 0, 125.0 + shift[0]], [0, 1, 125.0 + shift[1]], [0, 0, 1.0]])
    return from_center @ turn @ to_center


@pytest.fixture
def search(ideal_network, photograph):
    """Both directions between two cameras: the estimates, the errors of their sure cells, the network."""

    def search(*cameras, network=None, **settings):
        network = network or ideal_network(max_zoom=1.5, max_angle=30)
        estimator = Estimator(network, DenseSettings(subpixel=False, min_side=None, method="search", **settings))
        codes = [estimator.encode(photograph(c, SIZE)) for c in cameras]
        network.encodings = 0
        found = estimator.estimate_both(*codes)
        errors = [mistakes(e, *pair) for e, pair in zip(found, (cameras, cameras[::-1]))]
        return found, np.concatenate(errors), network

    return search


class Blind:
    """A network that is not asked."""

    def encode(self, images):
        return None


def mistakes(estimate, scene_from_reference, scene_from_query) -> np.ndarray:
    """In pixels of the reference."""
    sure = estimate.valid & (estimate.confidence > 0.1)
    there = transform(estimate.query_points, np.linalg.inv(scene_from_reference) @ scene_from_query)
    return np.linalg.norm(there - estimate.reference_points, axis=-1)[sure]


def test_a_pair_that_one_pass_finds_costs_one_pass(search):
    found, errors, network = search(camera(), camera(10, 1.2))
    assert [estimate.method for estimate in found] == ["direct", "direct"]
    assert errors.max() < 0.2
    assert (network.encodings, network.view_search, network.decodings) == (0, 0, 1)  # both directions in one batch


@pytest.mark.parametrize("zoom", [2.5, 1 / 3])
@pytest.mark.parametrize("degrees", [0, 100])
def test_zoom_is_found_both_ways_with_and_without_a_turn(search, zoom, degrees):
    found, errors, network = search(camera(), camera(degrees, zoom))
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert errors.max() < 0.3
    assert network.encodings == 3  # an aligned view a direction, and a window of the wider image


def test_a_window_off_the_center_is_found(search):
    """1.6 times is too much for this network; shrunk to 0.64 it is too little; a window of half the other image fits."""
    found, errors, _ = search(camera(), camera(0, 1.6, (20, -20)))
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert errors.max() < 0.3


def test_what_the_query_shows_of_a_wide_reference_is_magnified(search, ideal_network):
    """A quarter of the sides is a sixteenth of the image: too small a part for this network, unless it is magnified."""
    found, errors, _ = search(camera(), camera(0, 4, (25, 10)), network=ideal_network(max_zoom=3, least_part=0.1))
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert all(estimate.grid_size == (66, 64) for estimate in found)
    assert errors.max() < 0.3
    wide = found[0].confidence > 0.1
    assert 0.05 < wide.mean() < 0.08
    assert (found[0].valid & ~wide).mean() < 0.01


@pytest.mark.parametrize("stretch", [(2.8, 1), (1, 2.8), (1 / 2.8, 1)])
def test_a_view_from_the_side_is_found(search, ideal_network, stretch):
    """Such a wall looks 2.8 times narrower; squeezed to a half the other image differs by 1.4."""
    seen = camera() @ np.diag([*stretch, 1.0])
    seen[:2, 2] += 125 - transform(np.divide(SIZE, 2)[None], seen)[0]  # the same middle
    found, errors, network = search(camera(), seen, network=ideal_network(max_zoom=2.5, max_stretch=1.6))
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert errors.max() < 0.5
    assert network.view_search == 7 + 8


def test_what_keypoints_propose_is_tried_before_the_network_looks(search, ideal_network, monkeypatch):
    """Turned by 20 degrees: the nearest turns of the search leave 20 and 25, more than this network bears."""
    cameras, network = (camera(), camera(20)), ideal_network(max_angle=8)
    assert [estimate.method for estimate in search(*cameras, network=network)[0]] == ["direct (search found none)"] * 2
    rng = np.random.default_rng(0)
    points = rng.uniform(40, 200, (60, 2))
    there = transform(points, np.linalg.inv(cameras[1]) @ cameras[0])
    there[::3] = rng.uniform(0, 250, (20, 2))  # a third is wrong
    monkeypatch.setattr(view_search, "match_descriptions", lambda *images: (points, there, np.ones(60)))
    network.view_search = 0
    found, errors, network = search(*cameras, network=network)
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert errors.max() < 0.3
    assert network.view_search == 0


def test_a_wrong_proposal_of_keypoints_is_refused(search, ideal_network, monkeypatch):
    """It is consistent in itself, but a pass through it finds nothing; the looks go on and find the turn."""
    points = np.random.default_rng(0).uniform(40, 200, (60, 2))
    monkeypatch.setattr(view_search, "match_descriptions", lambda *images: (points, points * 0.7 + 30, np.ones(60)))
    found, errors, network = search(camera(), camera(135))
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert errors.max() < 0.3
    assert network.view_search == 7


@pytest.mark.parametrize(("degrees", "zoom"), [(0, 1), (70, 2.0), (200, 0.4)])
def test_keypoints_propose_the_homography_of_the_original_images(degrees, zoom):
    rng = np.random.default_rng(1)
    wall = sum(cv2.resize(rng.normal(0, 1, (n, n)), (600, 600), interpolation=cv2.INTER_CUBIC) for n in (12, 40, 120))
    wall = np.clip(127 + 40 * np.repeat(wall[..., None], 3, 2), 0, 255).astype(np.uint8)
    turn = np.vstack((cv2.getRotationMatrix2D((300, 300), degrees, zoom), [0, 0, 1]))
    images = wall, cv2.warpPerspective(wall, turn, (600, 600), flags=cv2.INTER_AREA)
    estimator = Estimator(Blind(), DenseSettings(subpixel=False, min_side=300, method="search"))
    proposed = ViewSearch(estimator.network, tuple(map(estimator.encode, images))).by_keypoints()
    corners = np.array([[250, 250], [350, 250], [350, 350], [250, 350.0]])
    assert np.abs(transform(corners, proposed) - transform(corners, turn)).max() < 2 * max(1, zoom)


def test_without_texture_keypoints_propose_nothing():
    estimator = Estimator(Blind(), DenseSettings(subpixel=False, min_side=None, method="search"))
    gray = estimator.encode(np.full((100, 100, 3), 90, np.uint8))
    assert ViewSearch(estimator.network, (gray, gray)).by_keypoints() is None


def test_one_search_serves_both_directions(search):
    _, _, network = search(camera(), camera(135))
    assert network.view_search == 7  # the turns beside none


def test_a_pair_that_nothing_finds_costs_a_known_number_of_looks(search, ideal_network):
    found, _, network = search(camera(), camera(), network=ideal_network(max_angle=0))
    assert [estimate.method for estimate in found] == ["direct (search found none)"] * 2
    assert (network.view_search, network.encodings, network.decodings) == (7 + 8 + 16 + 18, 0, 1)


def test_a_pass_at_the_limit_of_what_it_can_find_is_aligned_without_a_search(search, ideal_network):
    found, errors, network = search(camera(), camera(0, 2), network=ideal_network(slip=0.02))
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert np.median(errors) < 0.1  # two percent of the flow before, of what alignment leaves after
    assert network.view_search == 0


def test_a_plane_found_in_part_is_completed_through_its_homography(search, ideal_network):
    """Turned by 20 degrees the corners move by up to 64 pixels: this network finds the middle, then all of it."""
    found, errors, network = search(camera(), camera(20), network=ideal_network(longest_flow=32))
    assert [estimate.method for estimate in found] == ["search", "search"]
    assert all((estimate.confidence > 0.1)[estimate.valid].mean() > 0.95 for estimate in found)
    assert errors.max() < 0.3
    assert network.view_search == 0


def test_how_far_a_pair_is_counts_as_the_network_sees_it_not_in_pixels_of_the_files(ideal_network, photograph):
    for degrees, zoom, far in [(0, 1, False), (20, 1.5, False), (30, 1, True), (0, 2, True), (0, 0.5, True)]:
        estimator = Estimator(ideal_network(), DenseSettings(subpixel=False, min_side=64))
        small = camera(degrees, zoom) @ np.diag([4.0, 4.0, 1])  # the query's file is four times smaller
        images = photograph(camera(), SIZE), photograph(small, (66, 64))
        codes = [estimator.encode(image) for image in images]
        estimate = estimator.estimate(*codes)
        assert is_far(estimate, estimate.valid, codes[0].view, codes[1].view) is far


def test_a_magnified_view_shows_the_window_and_a_shrunk_one_everything():
    image = np.zeros((80, 80, 3), np.uint8)
    image[:40, 40:] = 255  # the upper right quarter
    whole = View.whole(image, (80, 80), (80, 80))
    np.testing.assert_allclose(whole.zoomed(2, (0.75, 0.25)).render()[2:-2, 2:-2], 1, atol=1e-6)
    shrunk = whole.zoomed(0.5)
    white = (shrunk.render() > 0.99).all(-1)
    assert white[20:40, 40:60].mean() > 0.85
    assert white.sum() <= 400
    assert shrunk.seen_size == (40, 40)


def test_settings_that_contradict_the_search_are_refused():
    with pytest.raises(SettingsError, match="leave rotations out"):
        DenseSettings(method="search", rotations=8)
    with pytest.raises(SettingsError, match="search_below"):
        DenseSettings(search_below=1.5)


def test_without_looks_only_proposals_are_tried(search, ideal_network):
    network = ideal_network(max_angle=8)
    found, _, network = search(camera(), camera(135), network=network, view_search=False)
    assert [estimate.method for estimate in found] == ["direct (search found none)"] * 2
    assert (network.view_search, network.decodings) == (0, 1)
    found, *_ = search(camera(), camera(0, 2), network=ideal_network(slip=0.02), view_search=False)
    assert [estimate.method for estimate in found] == ["search", "search"]  # by what the first pass is sure of
