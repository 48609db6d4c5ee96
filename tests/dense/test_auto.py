"""dense.method=auto: unrelated pairs end after the coarse levels, related ones are what a direct pass makes of them."""

import numpy as np
import pytest
import torch

from pdc_sfm.dense.coarse import mutual_matches
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.strategies import auto
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.images import Photograph
from pdc_sfm.matcher import Matcher, PairSettings, load_matcher
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.network import LevelOutput
from pdc_sfm.orientation import BY_NUMBER
from pdc_sfm.pipeline.matching import query_settings


def picture(seed, size=(320, 256)):
    """Smooth random blobs, larger than the size by 32 pixels each way."""
    torch.manual_seed(seed)
    coarse = torch.rand(1, 3, size[1] // 8 + 4, size[0] // 8 + 4)
    large = torch.nn.functional.interpolate(coarse, scale_factor=8, mode="bicubic")[0].clamp(0, 1)
    return (255 * large).byte().permute(1, 2, 0).numpy()


def views(seed=0, size=(320, 256)):
    image = picture(seed, size)
    return image[: size[1], : size[0]].copy(), image[8 : 8 + size[1], 16 : 16 + size[0]].copy()


def made(method="auto", select=None, **options):
    return load_matcher(
        settings=PairSettings(DenseSettings(min_side=256, method=method, **options), select or SelectSettings()),
        device="cpu",
    )


class Watched:
    """A network that counts how far it decodes."""

    def __init__(self, network):
        self._network, self.fine = network, 0

    def __getattr__(self, name):
        return getattr(self._network, name)

    def decode(self, reference, query, last_level=0, passes=None, coarse=None):
        self.fine += not last_level
        return self._network.decode(reference, query, last_level, passes, coarse)


@pytest.fixture
def watched():
    matcher = made()
    network = Watched(matcher.estimator.network)
    return Matcher(network, matcher.settings), network


def test_auto_is_the_default():
    assert DenseSettings().method == "auto"


@pytest.mark.parametrize("select", [SelectSettings(), SelectSettings(directions="forward")])
def test_pairs_that_match_upright_are_what_a_direct_pass_gives_to_the_last_bit(select):
    direct, adaptive = made("direct", select), made(select=select)
    pairs = [
        ([m.encode(image) for image in views()], [m.encode(image) for image in views(1, (256, 320))])
        for m in (direct, adaptive)
    ]
    expected, found = (m.match_batch(some) for m, some in zip((direct, adaptive), pairs))
    for one, other in zip(found, expected):
        assert len(one) > 1000
        for name in ("keypoints0", "keypoints1", "scores"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    estimates = [m.estimator.estimate_both(*some[0]) for m, some in zip((direct, adaptive), pairs)]
    for one, other in zip(*estimates):
        np.testing.assert_array_equal(one.flow, other.flow)
        np.testing.assert_array_equal(one.confidence, other.confidence)


def test_unrelated_pairs_end_after_the_coarse_levels_and_match_nothing(watched):
    matcher, network = watched
    first, second = (matcher.encode(views(seed)[0]) for seed in (0, 1))
    assert len(matcher.match(first, second)) == 0
    assert network.fine == 0
    forward, backward = matcher.estimator.estimate_both(first, second)
    assert network.fine == 0
    for estimate in (forward, backward):
        assert estimate.method == "coarse levels (search found none)"
        assert estimate.flow.shape == (64, 80, 2)
        assert not estimate.valid.any()
        assert estimate.confidence.max() < 1e-6
    points = np.array([[30.0, 40.0], [100.0, 90.0]])
    assert len(matcher.match_keypoints(first, second, points, points).raw(points, points)) == 0


def test_a_block_of_pairs_of_several_sizes_and_kinds_is_sorted_together(watched):
    matcher, network = watched
    a, b = (matcher.encode(image) for image in views())
    c, d = (matcher.encode(image) for image in views(1, (256, 320)))
    pairs = [(a, c), (a, b), (d, c), (b, d)]
    found = matcher.match_batch(pairs)
    assert [len(matches) > 1000 for matches in found] == [False, True, True, False]
    assert network.fine == 4  # two pairs, both ways
    for pair, matches in zip(pairs, found):
        alone = matcher.match(*pair)
        np.testing.assert_array_equal(matches.keypoints1, alone.keypoints1)


def test_turned_files_among_them_are_in_stored_pixels(watched):
    matcher, _ = watched
    first, second = views()
    stored = Photograph(np.ascontiguousarray(BY_NUMBER[6].stored(second)), BY_NUMBER[6])
    plain = matcher.match(matcher.encode(first), matcher.encode(second))
    turned = matcher.match(matcher.encode(first), matcher.encode(stored))
    np.testing.assert_array_equal(turned.keypoints0, plain.keypoints0)
    expected = BY_NUMBER[6].stored_points(plain.keypoints1, (320, 256))
    np.testing.assert_allclose(turned.keypoints1, expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["black", "gray", "noise", "stripe"])
def test_images_that_show_nothing_are_silent_and_cost_no_fine_levels(watched, kind):
    matcher, network = watched
    rng = np.random.default_rng(0)
    nothing = {
        "black": np.zeros((256, 320, 3), np.uint8),
        "gray": np.full((256, 320, 3), 117, np.uint8),
        "noise": rng.integers(0, 256, (256, 320, 3), np.uint8),
        "stripe": np.full((40, 320, 3), 200, np.uint8),
    }[kind]
    for other in (views()[0], np.full((300, 256, 3), 117, np.uint8)):
        assert len(matcher.match(matcher.encode(nothing), matcher.encode(other))) == 0
    assert network.fine <= 2


def test_the_smallest_images_are_matched_or_left(watched):
    matcher, _ = watched
    small = picture(0)[:16, :16].copy()
    codes = matcher.encode(small), matcher.encode(views()[0])
    assert len(matcher.match(*codes)) < 50
    with pytest.raises(Exception, match="at least"):
        matcher.encode(small[:4])


def test_a_network_that_predicts_no_uncertainty_is_used_as_by_direct():
    from dataclasses import replace

    from pdc_sfm.network import COMPACT, PDCNet, for_inference

    torch.manual_seed(0)
    network = for_inference(PDCNet(replace(COMPACT, uncertainty="none")))
    select = SelectSettings(confidence="cyclic")
    found = []
    for method in ("direct", "auto"):
        matcher = Matcher(network, PairSettings(DenseSettings(min_side=256, method=method), select))
        found.append(matcher.match(*map(matcher.encode, views())))
    np.testing.assert_array_equal(found[0].keypoints1, found[1].keypoints1)


def branch_output(flow, sure):
    """Of the 256x256 branch, directions (B, 2, 32, 32), sure or not (B,)."""
    logits = torch.stack((torch.where(sure, 8.0, -8.0), torch.zeros(len(sure))), 1).view(-1, 2, 1, 1)
    log_var = torch.tensor((0.0, 11.0)).view(1, 2, 1, 1).expand(len(sure), 2, 32, 32)
    return LevelOutput(3, flow, log_var, logits.expand(-1, -1, 32, 32), (256, 256), (256, 256))


def test_expected_matches_are_those_that_agree_both_ways():
    shift = torch.tensor((64.0, 0.0)).view(1, 2, 1, 1).expand(1, 2, 32, 32)
    for back, sure, expected in (
        (-shift, True, 24 * 32),  # a quarter lies beyond the query
        (-shift + 7, True, 24 * 32),
        (-shift + 9, True, 0),
        (shift, True, 0),
        (-shift, False, 0),
    ):
        output = branch_output(torch.cat((shift, back)), torch.tensor((sure, sure)))
        found = mutual_matches(output)
        assert found.shape == (2, 1)
        assert found.max().item() == pytest.approx(expected, rel=0.06, abs=2)


def test_of_several_pairs_each_is_counted_with_its_own_way_back():
    flow = torch.zeros(6, 2, 32, 32)
    flow[1], flow[4], flow[5] = 16.0, -16.0, 40.0
    counted = mutual_matches(branch_output(flow, torch.tensor((True,) * 6))).amax(0)
    assert counted[0] > 1000
    assert counted[1] > 800
    assert counted[2] < 1


def test_the_memory_of_a_code_counts_the_pixels_that_a_search_needs():
    adaptive, direct = made(), made("direct")
    image = views()[0]
    assert adaptive.encode(image).nbytes >= direct.encode(image).nbytes + image.nbytes


@pytest.mark.parametrize(("windows", "quick"), [(None, False), (True, False), (False, True)])
def test_weak_pairs_are_searched_by_windows_too_and_lost_and_strong_ones_are_not(monkeypatch, windows, quick):
    matcher, searched = made(windows=windows, search_below=0.3), []

    def search(estimator, directions, first, quick=False):
        searched.append(quick)
        return first

    monkeypatch.setattr(auto, "search_views", search)
    image, (left, right) = picture(3), views()
    assert len(matcher.match(matcher.encode(left), matcher.encode(right))) > 1000
    assert not searched
    weak = views(2)[0]
    weak[80:160, 100:180] = image[90:170, 110:190]  # a part of another picture
    assert 0 < len(matcher.match(matcher.encode(image[:256, :320].copy()), matcher.encode(weak)))
    assert searched == [quick]
    matcher.match(matcher.encode(left), matcher.encode(views(4)[0]))
    assert searched == [quick, True]  # with nothing in common, as far as the coarse levels say


def test_queries_are_searched_by_windows_if_that_is_asked_for():
    for windows, expected in ((None, False), (True, True), (False, False)):
        chosen = query_settings(MatchingSettings(dense=DenseSettings(windows=windows)))
        assert chosen.dense.windows is expected
