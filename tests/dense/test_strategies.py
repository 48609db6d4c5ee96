"""What the strategies do, shown with a network that is exact within known limits and lost beyond them."""

import numpy as np
import pytest

from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.pixels import transform

SIZE = (248, 240)


def similarity(degrees: float = 0.0, zoom: float = 1.0, shift=(0.0, 0.0)) -> np.ndarray:
    """scene_from_image of a camera turned about the scene's center and seeing it `zoom` times larger."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, zoom]])
    to_center = np.array([[1, 0, -SIZE[0] / 2], [0, 1, -SIZE[1] / 2], [0, 0, 1.0]])
    from_center = np.array([[1, 0, 125.3 + shift[0]], [0, 1, 124.6 + shift[1]], [0, 0, 1.0]])
    return from_center @ turn @ to_center


PERSPECTIVE = np.array([[1.0, 0.1, 5], [-0.05, 1.1, 3], [8e-4, 4e-4, 1.0]])


def mistakes(estimate, scene_from_reference, scene_from_query) -> np.ndarray:
    """Distance of every valid point from the truth, in original pixels."""
    truth = transform(estimate.reference_points, np.linalg.inv(scene_from_query) @ scene_from_reference)
    return np.linalg.norm(estimate.query_points - truth, axis=-1)[estimate.valid]


@pytest.fixture
def run(ideal_network, photograph):
    """Estimate between two cameras; gives the estimate and its errors."""

    def run(reference, query, network=None, sizes=(SIZE, SIZE), **settings):
        estimator = Estimator(
            network or ideal_network(),
            DenseSettings(**{"subpixel": False, "min_side": None, "method": "direct", **settings}),
        )
        codes = [estimator.encode(photograph(c, s)) for c, s in zip((reference, query), sizes)]
        estimate = estimator.estimate(*codes)
        return estimate, mistakes(estimate, reference, query)

    return run


def test_direct_gives_original_pixels_whatever_the_networks_resolution(run):
    for side in (None, 120, 160):
        estimate, errors = run(similarity(), similarity(10, 1.2), min_side=side)
        assert estimate.method == "direct"
        assert errors.size > 500
        assert errors.max() < 0.1


def test_reference_and_query_may_have_different_sizes(run):
    estimate, errors = run(similarity(), similarity(5, 1.5), sizes=(SIZE, (120, 184)), min_side=96)
    assert estimate.reference_size == SIZE
    assert estimate.query_size == (120, 184)
    assert errors.max() < 0.1


def test_points_outside_the_query_are_not_valid(run):
    zoomed = similarity(0, 2)  # shows the middle half of the scene
    estimate, _ = run(similarity(), zoomed)
    x, y = np.moveaxis(estimate.reference_points, -1, 0)
    in_middle = (np.abs(x - 123.5) < 60) & (np.abs(y - 119.5) < 58)
    at_border = (np.abs(x - 123.5) > 64) | (np.abs(y - 119.5) > 62)
    assert estimate.valid[in_middle].all()
    assert not estimate.valid[at_border].any()


def test_the_second_pass_removes_errors_that_grow_with_the_flow(run, ideal_network):
    network = ideal_network(slip=0.02)
    _, direct = run(similarity(), similarity(25, 1.3, (8, -5)), network)
    refined, errors = run(similarity(), similarity(25, 1.3, (8, -5)), network, method="homography")
    assert refined.method == "homography"
    assert direct.mean() > 0.5
    assert errors.mean() < 0.1  # what is left of the flow after alignment is small, and so is 2 percent of it


def test_a_strong_perspective_is_composed_exactly(run):
    estimate, errors = run(similarity(), PERSPECTIVE, method="homography")
    assert estimate.method == "homography"
    assert errors.size > 1000
    assert errors.max() < 0.1


def test_where_the_warped_query_shows_nothing_the_first_pass_stays(run, ideal_network, photograph):
    scene_from_query = similarity(0, 2)
    settings = DenseSettings(subpixel=False, min_side=None, method="homography")
    estimator = Estimator(ideal_network(slip=0.01), settings)
    reference, query = (estimator.encode(photograph(c, SIZE)) for c in (similarity(), scene_from_query))
    estimate = estimator.estimate(reference, query)
    direct = Estimator(
        ideal_network(slip=0.01), DenseSettings(subpixel=False, min_side=None, method="direct")
    ).estimate(reference, query)
    corner = (slice(0, 5), slice(0, 5))
    np.testing.assert_array_equal(estimate.flow[corner], direct.flow[corner])
    assert not estimate.valid[corner].any()
    middle = (slice(28, 32), slice(28, 32))
    assert (estimate.flow[middle] != direct.flow[middle]).any()


def test_too_few_confident_matches_mean_no_second_pass(run, ideal_network):
    lost = ideal_network(max_angle=20)
    estimate, _ = run(similarity(), similarity(90), lost, method="homography")
    assert estimate.method == "direct (homography found none)"
    estimate, _ = run(similarity(), similarity(10), lost, method="homography", min_matches=10**6)
    assert estimate.method == "direct (homography found none)"


def test_scales_find_a_zoom_that_a_direct_pass_cannot(run, ideal_network):
    network = ideal_network(max_zoom=1.5)
    for zoom in (2.0, 0.5):
        plain, _ = run(similarity(), similarity(0, zoom), network, method="homography")
        assert plain.method == "direct (homography found none)"
        estimate, errors = run(similarity(), similarity(0, zoom), network, method="multiscale")
        assert estimate.method == "multiscale"
        assert errors.max() < 0.1
        assert estimate.grid_size == (SIZE[0] // 4, SIZE[1] // 4)
        assert (estimate.confidence[estimate.valid] > 0.5).mean() > 0.95


def test_if_no_scale_has_a_homography_the_scale_1_pass_is_returned(run, ideal_network):
    estimate, _ = run(similarity(), similarity(90), ideal_network(max_angle=20), method="multiscale")
    assert estimate.method == "direct (multiscale found none)"
    assert estimate.grid_size == (SIZE[0] // 4, SIZE[1] // 4)


@pytest.mark.parametrize("degrees", [45, 90, 180, 300])
def test_the_rotation_search_finds_any_turn(run, ideal_network, degrees):
    network = ideal_network(max_angle=30)
    lost, _ = run(similarity(), similarity(degrees), network)
    assert not (lost.confidence > 0.1).any()
    estimate, errors = run(similarity(), similarity(degrees), network, rotations=8, method="direct")
    assert estimate.method.startswith("rotated")
    assert errors.size > 1000
    assert errors.max() < 0.1


def test_rotation_and_scale_searches_work_together(run, ideal_network):
    network = ideal_network(max_angle=30, max_zoom=3)
    estimate, errors = run(similarity(), similarity(170, 2.5), network, rotations=8, method="multiscale")
    assert estimate.method == "rotated 180, multiscale"
    assert errors.max() < 0.1


def test_upright_pairs_stay_upright_in_a_rotation_search(run, ideal_network):
    estimate, _ = run(similarity(), similarity(5), ideal_network(max_angle=30), rotations=4, method="direct")
    assert estimate.method == "direct"


def test_both_directions_share_the_rotation_search_and_the_shrunken_codes(ideal_network, photograph):
    network = ideal_network(max_angle=30)
    settings = DenseSettings(subpixel=False, min_side=None, rotations=8, method="multiscale")
    estimator = Estimator(network, settings)
    cameras = similarity(), similarity(90)
    codes = [estimator.encode(photograph(camera, SIZE)) for camera in cameras]
    forward, backward = estimator.estimate_both(*codes)
    assert mistakes(forward, *cameras).max() < 0.1
    assert mistakes(backward, *cameras[::-1]).max() < 0.1
    assert {forward.method, backward.method} == {"rotated 90, multiscale", "rotated 270, multiscale"}


def test_a_batch_gives_what_single_pairs_give_and_decodes_equal_sizes_once(ideal_network, photograph):
    network = ideal_network()
    estimator = Estimator(network, DenseSettings(subpixel=False, min_side=None, method="direct"))
    sizes = (SIZE, SIZE, (160, 200))
    codes = [estimator.encode(photograph(similarity(a), s)) for a, s in zip((0, 10, 20), sizes)]
    pairs = [(codes[0], codes[1]), (codes[1], codes[2]), (codes[1], codes[0])]
    single = [estimator.estimate(*pair) for pair in pairs]
    network.decodings = 0
    batch = estimator.estimate_batch(pairs)
    assert network.decodings == 2
    for one, other in zip(single, batch):
        np.testing.assert_array_equal(one.flow, other.flow)
        assert one.query_size == other.query_size


def test_a_direct_strategy_keeps_no_pixels(ideal_network, photograph):
    image = photograph(similarity(), SIZE)
    light = Estimator(ideal_network(), DenseSettings(subpixel=False, min_side=None, method="direct")).encode(image)
    heavy = Estimator(ideal_network(), DenseSettings(subpixel=False, min_side=None, method="homography")).encode(image)
    assert light.nbytes == light.code.nbytes
    assert heavy.nbytes == heavy.code.nbytes + image.nbytes


def test_magnifying_views_use_the_detail_the_original_has(ideal_network, photograph):
    """A query kept at twice the network's resolution is warped from there."""
    image = photograph(similarity(), SIZE)
    estimator = Estimator(ideal_network(), DenseSettings(subpixel=False, min_side=60, method="homography"))
    encoded = estimator.encode(image)
    assert encoded.view.size == (62, 60)
    assert encoded.view.source.shape == (120, 124, 3)


def test_wrong_arrays_and_settings_are_refused(ideal_network):
    estimator = Estimator(ideal_network())
    with pytest.raises(ImageError, match="expected RGB"):
        estimator.encode(np.zeros((50, 50), np.uint8))
    with pytest.raises(ImageError, match="at least 16x16"):
        Estimator(ideal_network(), DenseSettings(subpixel=False, min_side=None)).encode(np.zeros((50, 8, 3), np.uint8))
    with pytest.raises(SettingsError, match=r"threshold=1\.0 must be a probability"):
        DenseSettings(threshold=1.0)
    with pytest.raises(SettingsError, match="rotations"):
        DenseSettings(rotations=0)
    with pytest.raises(SettingsError, match="scales"):
        DenseSettings(scales=(1.0, 0.0))
