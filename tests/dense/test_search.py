"""What the search finds and what it costs, with the built-in network on pictures that it never saw."""

import cv2
import numpy as np
import pytest
import torch

from pdc_sfm.dense.coarse import usual_turns
from pdc_sfm.dense.estimator import EncodedView, Estimator
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.strategies import search
from pdc_sfm.dense.view_codes import SHAPES, WHOLE, ViewCodes, combinations, encode_coarse
from pdc_sfm.dense.view_evidence import compare
from pdc_sfm.dense.view_search import ViewSearch, is_far
from pdc_sfm.dense.views import SQUEEZED, Shape, View
from pdc_sfm.errors import SettingsError
from pdc_sfm.network import NetworkSettings, PDCNet
from pdc_sfm.pixels import COARSE_SIDE, transform
from pdc_sfm.weights import load_network

SIZE = (320, 256)
# what all views of an image of that size cost, in views of 256x256 pixels: eight shrunk ones and an empty canvas are a quarter
# each, and all windows are one of 512x(256 + 2 x 96 / 16 cells x 16)
ALL = WHOLE + 9 / 4 + 512 * (256 + 2 * 96) / 256**2


def wall(seed: int, size: int = 640) -> np.ndarray:
    """A colored wall with things on it."""
    rng = np.random.default_rng(seed)
    layers = [
        cv2.resize(rng.normal(0, 1, (n, n, 3)), (size, size), interpolation=cv2.INTER_CUBIC) for n in (5, 20, 80, 200)
    ]
    image = np.clip(127 + 25 * sum(layers), 0, 255).astype(np.uint8)
    for _ in range(60):
        color, center = rng.integers(0, 255, 3).tolist(), rng.integers(0, size, 2)
        corners = center + rng.integers(-60, 60, (rng.integers(3, 6), 2))
        cv2.fillConvexPoly(image, cv2.convexHull(corners.astype(np.int32)), color)
    return image


def camera(degrees: float = 0.0, zoom: float = 1.0, squeezed: float = 1.0, place=(320, 320)) -> np.ndarray:
    """image_from_wall: turned, near, and from the side."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    scale = 0.5 * zoom * turn @ np.diag([squeezed, 1.0])
    return np.vstack((np.column_stack((scale, np.divide(SIZE, 2) - scale @ place)), [0, 0, 1.0]))


def photograph(image: np.ndarray, image_from_wall: np.ndarray) -> np.ndarray:
    large = cv2.warpPerspective(image, np.diag([3.0, 3, 1]) @ image_from_wall, (3 * SIZE[0], 3 * SIZE[1]))
    return cv2.resize(large, SIZE, interpolation=cv2.INTER_AREA)


class Counting:
    """The built-in network, and how often its parts ran."""

    def __init__(self, network: PDCNet):
        self.network = network
        self.views = self.passes = self.encodings = 0

    def __getattr__(self, name: str):
        return getattr(self.network, name)

    def encode(self, images: torch.Tensor):
        self.encodings += 1
        return self.network.encode(images)

    def encode_low(self, images: torch.Tensor):
        self.views += len(images)
        return self.network.encode_low(images)

    def coarsest_features(self, images: torch.Tensor):
        self.views += images[:, 0].numel() / COARSE_SIDE**2  # by their pixels
        return self.network.coarsest_features(images)

    def decode(self, reference, query, last_level: int = 0, **options):
        self.passes += not last_level
        return self.network.decode(reference, query, last_level, **options)


@pytest.fixture(scope="module")
def builtin() -> PDCNet:
    return load_network(None, "cpu", "float32")


@pytest.fixture(scope="module")
def shared(builtin) -> Estimator:
    return Estimator(Counting(builtin), DenseSettings(min_side=256, method="search"))


@pytest.fixture
def estimator(shared) -> Estimator:
    """One for all, so that the views of an image that several tests use are encoded once."""
    shared.network.views = shared.network.passes = shared.network.encodings = 0
    return shared


@pytest.fixture(scope="module")
def plain(shared) -> EncodedView:
    return shared.encode(photograph(wall(1), camera()))


def mistakes(estimate, image_from_wall: np.ndarray, other_from_wall: np.ndarray) -> np.ndarray:
    """Of sure cells, in pixels of the query."""
    sure = estimate.valid & (estimate.confidence > 0.5)
    there = transform(estimate.reference_points, other_from_wall @ np.linalg.inv(image_from_wall))
    return np.linalg.norm(there - estimate.query_points, axis=-1)[sure]


@pytest.mark.parametrize(
    "other",
    [camera(140), camera(0, 4, place=(250, 370)), camera(0, 1.2, 0.28), camera(230, 1.2, 0.35), camera(100, 0.25)],
    ids=["turned", "near", "from the side", "turned and from the side", "turned and far"],
)
def test_one_search_finds_both_directions(estimator, plain, other):
    cameras = camera(), other
    found = estimator.estimate_both(plain, estimator.encode(photograph(wall(1), other)))
    assert estimator.network.passes <= 1 + 2 * search.ROUNDS
    assert [one.method for one in found] == ["search", "search"]
    for one, pair in zip(found, (cameras, cameras[::-1])):
        errors = mistakes(one, *pair)
        assert len(errors) > 100
        assert np.quantile(errors, 0.95) < 3 * max(1, np.sqrt(np.linalg.det(pair[1][:2, :2] / pair[0][:2, :2].max())))


@pytest.mark.parametrize(
    "other", [camera(140), camera(0, 1.2, 0.28), camera(230, 1.2, 0.35)], ids=["turned", "side", "turned and side"]
)
def test_auto_searches_what_the_coarse_levels_do_not_find(builtin, plain, other):
    """Two decodings, one a direction: of a pair that has nothing in common as it is, no fine levels run before."""
    estimator = Estimator(Counting(builtin), DenseSettings(min_side=256))
    found = estimator.estimate_both(plain, estimator.encode(photograph(wall(1), other)))
    assert [one.method for one in found] == ["search", "search"]
    assert estimator.network.passes <= 4
    for one, pair in zip(found, ((camera(), other), (other, camera()))):
        errors = mistakes(one, *pair)
        assert len(errors) > 100
        assert np.quantile(errors, 0.95) < 3 * max(1, np.sqrt(np.linalg.det(pair[1][:2, :2] / pair[0][:2, :2].max())))


@pytest.mark.parametrize("quick", [False, True])
def test_a_homography_that_is_mere_chance_is_not_proposed(estimator, plain, quick):
    other = estimator.encode(photograph(wall(3), camera()))
    found = ViewSearch(estimator.network, (estimator.views(plain), estimator.views(other)))
    assert found.propose(np.ones((8, 8), bool), known=np.eye(3), quick=quick) is None


def test_views_are_encoded_once_an_image_and_their_bytes_are_counted_from_the_start(estimator, builtin, plain):
    estimator.views(plain).maps()
    others = [estimator.encode(photograph(wall(seed), camera(140))) for seed in (1, 2)]
    estimator.network.views = 0
    before = others[0].nbytes
    without = Estimator(builtin, DenseSettings(min_side=256, method="homography"))
    assert before - without.encode(photograph(wall(1), camera(140))).nbytes == others[0].views.nbytes
    estimator.estimate_both(plain, others[0])
    assert ALL <= estimator.network.views < 2 * ALL  # of the other image, and some looks
    assert (others[0].nbytes, others[0].views.maps().nbytes) == (before, others[0].views.nbytes)
    for code in (plain, others[0]):
        estimator.network.views = 0
        estimator.estimate_both(code, others[1])
    assert estimator.network.views < WHOLE  # looks: all views are there


def test_a_quick_search_costs_little_where_there_is_nothing(estimator, plain):
    other = estimator.encode(photograph(wall(5), camera()))
    directions = [(plain, other), (other, plain)]
    first = estimator.one_pass(directions)
    estimator.views(plain).maps()
    estimator.network.views = estimator.network.passes = 0
    found = search.search_views(estimator, directions, first, quick=True)
    assert [one.method for one in found] == ["direct (search found none)"] * 2
    assert estimator.network.passes == 0
    assert estimator.network.views <= ALL + 4


def test_a_pair_that_one_pass_finds_costs_one_pass(estimator, plain):
    other = estimator.encode(photograph(wall(1), camera(8, 1.05)))
    estimator.network.encodings = 0
    found = estimator.estimate_both(plain, other)
    assert [one.method for one in found] == ["direct", "direct"]
    network = estimator.network
    assert (network.encodings, network.views, network.passes) == (0, 0, 1)  # both directions in one batch


def test_a_plane_at_the_limit_of_a_pass_is_passed_again_without_a_search(estimator, plain):
    cameras = camera(), camera(32)
    found = estimator.estimate_both(plain, estimator.encode(photograph(wall(1), cameras[1])))
    assert [one.method for one in found] == ["search", "search"]
    assert (estimator.network.views, estimator.network.passes) == (0, 3)
    assert np.quantile(mistakes(found[0], *cameras), 0.95) < 1


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_unrelated_pictures_stay_silent(estimator, plain, seed):
    for one in estimator.estimate_both(plain, estimator.encode(photograph(wall(seed), camera(30 * seed)))):
        assert one.method == "direct (search found none)"
        assert (one.valid & (one.confidence > 0.5)).mean() < 0.01


def test_two_planes_that_need_different_views_are_both_found(estimator):
    """Of a picture cut in two the halves are turned by other angles: no homography shows both."""
    upper, lower = wall(1), wall(2)
    plain, turned = (np.full((2 * SIZE[1], SIZE[0], 3), 90, np.uint8) for _ in range(2))
    for n, (image, degrees) in enumerate(((upper, 90), (lower, 200))):
        place = slice(n * SIZE[1], (n + 1) * SIZE[1])
        plain[place], turned[place] = photograph(image, camera()), photograph(image, camera(degrees))
    codes = [estimator.encode(image) for image in (plain, turned)]
    found = estimator.estimate_both(*codes)[0]
    for n, degrees in enumerate((90, 200)):
        shift = np.array([[1, 0, 0], [0, 1, n * SIZE[1]], [0, 0, 1.0]])
        there = transform(found.reference_points, shift @ camera(degrees) @ np.linalg.inv(shift @ camera()))
        right = np.linalg.norm(there - found.query_points, axis=-1) < 3
        half = found.reference_points[..., 1] // SIZE[1] == n
        assert (right & half & estimator.sure(found)).sum() > 200


@pytest.mark.parametrize(
    "images",
    [
        (np.full((100, 100, 3), 90, np.uint8), wall(1)),
        (np.full((16, 1000, 3), 255, np.uint8), np.zeros((40, 30, 3), np.uint8)),
        (wall(1)[:17, :16], wall(1)),
    ],
    ids=["one color", "strips of one color", "the smallest image"],
)
def test_what_shows_nothing_is_silent(estimator, images):
    for one in estimator.estimate_both(*(estimator.encode(image) for image in images)):
        assert (estimator.sure(one)).mean() < 0.02
        assert np.isfinite(one.flow).all()


@pytest.mark.parametrize("method", ["search", "auto"])
def test_a_thousand_fold_zoom_is_silent(builtin, plain, method):
    estimator = Estimator(Counting(builtin), DenseSettings(min_side=256, method=method))
    for one in estimator.estimate_both(plain, estimator.encode(photograph(wall(1), camera(0, 1000)))):
        assert (one.valid & (one.confidence > 0.5)).mean() < 0.02
    assert estimator.network.passes <= 1  # and ends after it at the latest


def test_published_networks_are_searched_with_too():
    torch.manual_seed(0)
    network = PDCNet(NetworkSettings(global_iterations=1, local_iterations=1)).eval()
    estimator = Estimator(network, DenseSettings(min_side=256, method="search"))
    image0, image1 = (estimator.encode(cv2.resize(wall(seed), (256, 256))) for seed in (1, 2))
    directions = [(image0, image1), (image1, image0)]
    for one in search.search_views(estimator, directions, estimator.one_pass(directions), quick=True):
        assert one.grid_size == (64, 64)
    assert image0.views.nbytes == image0.views.maps().nbytes


# --- parts ---------------------------------------------------------------------------------------------------------------


def test_of_all_combinations_those_that_match_stand_out():
    torch.manual_seed(0)
    unit = torch.nn.functional.normalize(torch.randn(4, 16, 64), dim=1)
    shuffled = unit[1][:, torch.randperm(64)]
    maps = torch.stack((unit[2], shuffled, torch.ones(16, 64) / 4))
    pairs = np.array([[n, m] for m in range(3) for n in range(2)])[::-1].copy()
    counts, partner = compare(unit[:2], maps, pairs)
    found = torch.zeros(2, 3)
    found[pairs[:, 0], pairs[:, 1]] = counts.sum(1)  # in the order of the pairs, whatever that is
    assert found[1, 1] > 5 * max(found[0, 0], found[0, 1], found[1, 0])
    assert (found[:, 2] == 0).all()  # nothing stands out where all is the same
    right = int(np.flatnonzero((pairs == 1).all(1))[0])
    there = partner[right][counts[right] > 0]
    np.testing.assert_allclose(shuffled[:, there], unit[1][:, counts[right] > 0])


def test_one_of_two_images_is_turned_and_the_other_stays():
    turns = np.array([shape.turn for shape in SHAPES])
    pairs = combinations()
    assert (turns[pairs] == 0).any(1).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)


def test_a_view_on_a_canvas_is_squeezed_then_turned_about_its_place():
    image = np.zeros((100, 200, 3), np.uint8)
    view = View.whole(image, (200, 100), (200, 100)).on_canvas(256, Shape(90, 0, 1.0, (0.25, 0.5)))
    middle = transform(np.array([[127.5, 127.5]]), view.original_from_view)[0]
    np.testing.assert_allclose(middle, (49.5, 49.5))
    up = transform(np.array([[127.5, 117.5]]), view.original_from_view)[0]  # ten pixels up: what was on the right
    np.testing.assert_allclose(up - middle, (10 * 200 / 256 / SQUEEZED, 0), atol=1e-9)


def test_how_far_a_pair_is_counts_as_the_network_sees_it_not_in_pixels_of_the_files(ideal_network, photograph):
    def scene(degrees: float, zoom: float) -> np.ndarray:
        angle = np.radians(degrees)
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, zoom]])
        to_center, from_center = (np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]]) for x, y in ((-132, -128), (125, 125)))
        return from_center @ turn @ to_center

    for degrees, zoom, far in [(0, 1, False), (20, 1.5, False), (30, 1, True), (0, 2, True), (0, 0.5, True)]:
        estimator = Estimator(ideal_network(), DenseSettings(subpixel=False, min_side=64, method="direct"))
        small = scene(degrees, zoom) @ np.diag([4.0, 4.0, 1])  # the query's file is four times smaller
        codes = [
            estimator.encode(image) for image in (photograph(scene(0, 1), (264, 256)), photograph(small, (66, 64)))
        ]
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


def test_shrunk_views_and_windows_are_what_encoding_each_by_itself_gives(builtin):
    """Nearly: less of the canvas is around a shrunk image, more of the image around a window, which is up to half a cell off."""
    image = photograph(wall(1), camera())
    codes = ViewCodes(builtin, View.whole(image, SIZE, SIZE), 128)
    alone = [encode_coarse(builtin, [codes.view.on_canvas(256, shape)], "cpu").features[4][0] for shape in SHAPES]
    for number, (views, expected) in enumerate(zip(codes.maps().float(), alone)):
        alike = (views * expected).sum(0)[6:10, 6:10]
        others = (views * alone[0]).sum(0)[6:10, 6:10]
        assert alike.mean() > 0.8, number
        assert number == 0 or alike.mean() > others.mean() + 0.2, number


@pytest.mark.parametrize("zoom", [3.0, 4.0])
def test_auto_finds_a_zoom_that_the_coarse_levels_call_unrelated(builtin, plain, zoom):
    estimator = Estimator(builtin, DenseSettings(min_side=256))
    other = camera(70, zoom, place=(280, 350))
    found = estimator.estimate_both(plain, estimator.encode(photograph(wall(1), other)))
    assert [one.method for one in found] == ["search", "search"]
    for one, pair in zip(found, ((camera(), other), (other, camera()))):
        errors = mistakes(one, *pair)
        assert len(errors) > 100
        assert np.quantile(errors, 0.95) < 3 * max(1, zoom if pair[1] is other else 1)


@pytest.mark.parametrize("degrees", [-75, 0, 20, 60, 170])
def test_the_turn_of_likely_cells_is_read_off_the_coarse_flow(degrees):
    """Cells that are not likely say nothing."""
    y, x = np.indices((32, 32), dtype=np.float32)
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    flow = np.stack((cos * x - sin * y - x, sin * x + cos * y - y))
    flow[:, 20:] = 0
    likely = (y < 19).astype(np.float32)
    turns = usual_turns(np.stack((likely, 0 * likely)), np.stack((flow, flow)))
    assert turns.ravel() == pytest.approx([abs(degrees), 0], abs=0.01)


def test_a_turned_picture_that_one_pass_finds_is_matched_once_more_turned_back(builtin, plain):
    turned = camera(60)
    estimator = Estimator(builtin, DenseSettings(min_side=256, search_below=0.0))  # any pass is enough
    direct = Estimator(builtin, DenseSettings(min_side=256, method="direct"))
    other = estimator.encode(photograph(wall(1), turned))
    found, alone = (one.estimate_both(plain, other)[0] for one in (estimator, direct))
    assert found.method == "search"
    assert estimator.sure(found).sum() > estimator.sure(alone).sum()
    assert np.quantile(mistakes(found, camera(), turned), 0.95) < 1
