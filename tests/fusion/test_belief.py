"""Which depths are believed: by the planes around them, and by what other views see of the surface or behind it."""

import numpy as np
import pytest
from two_planes import FLOOR, SIZE, WALL, true_depth, write_map

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.posed_views import posed_views
from pdc_sfm.fusion.checks import see
from pdc_sfm.fusion.depth import GEOMETRIC, DensePlan
from pdc_sfm.fusion.geometry import Transfer, pixel_grid
from pdc_sfm.fusion.model_planes import model_planes
from pdc_sfm.fusion.patches import CHOSEN, Partner, PatchCost
from pdc_sfm.fusion.probability import OWN_WEIGHTS, belief, guided_mean, logistic, own_features
from pdc_sfm.fusion.probability_network import FEATURES, ProbabilityNetwork, final_features, probability_network, signs
from pdc_sfm.fusion.smoothing import smooth
from pdc_sfm.fusion.workspace import Workspace

GX, GY = 0.001, 0.0005  # change of inverse depth a pixel


def a_plane(size=(40, 30)):
    """Inverse depth (h, w) and its gradient."""
    x, y = pixel_grid(size)
    return 0.2 + GX * x + GY * y, np.full_like(x, GX), np.full_like(x, GY)


def test_the_planes_of_points_are_found():
    rng = np.random.default_rng(0)
    rays = np.c_[rng.uniform(-0.5, 0.5, 80), rng.uniform(0.4, 0.8, 80), np.ones(80)]
    on_floor = rays / (rays @ FLOOR)[:, None]
    rays = np.c_[rng.uniform(-0.5, 0.5, (120, 2)), np.ones(120)]
    on_wall = rays / (rays @ WALL)[:, None]
    astray = rng.uniform((-1, -1, 2), (1, 1, 4), (40, 3))
    found = model_planes(np.concatenate([on_floor, on_wall, astray]), rng)
    assert found[0] == pytest.approx(WALL, abs=0.005)  # the one of most points first
    assert found[1] == pytest.approx(FLOOR, abs=0.02)
    assert model_planes(astray[:11], rng).shape == (0, 3)  # too few


def test_a_plane_that_errs_alone_is_corrected():
    rho, gx, gy = a_plane()
    rng = np.random.default_rng(0)
    wrong = rng.random(rho.shape) < 0.25
    spoiled = np.where(wrong, rho * rng.uniform(0.5, 2, rho.shape), rho)
    found = smooth(spoiled, gx, gy, np.ones_like(rho), np.full_like(rho, 100))
    inner = np.s_[4:-4, 4:-4]  # elsewhere the edge's planes are repeated
    assert np.abs(found.rho / rho - 1)[inner].max() < 0.005
    assert found.support[inner].mean() == pytest.approx(0.75, abs=0.03)


def test_an_edge_between_surfaces_of_other_colors_stays():
    rho, gx, gy = a_plane()
    gray = np.full_like(rho, 100)
    rho[:, 20:] *= 1.5
    gray[:, 20:] = 160  # exp(-6) of the weight
    found = smooth(rho, gx, gy, np.ones_like(rho), gray)
    assert np.abs(found.rho / rho - 1)[4:-4, 4:-4].max() < 0.005


def test_neighbors_on_the_plane_and_nearer_ones_count():
    rho, gx, gy = a_plane()
    ones = np.ones_like(rho)
    assert (own_features(rho, gx, gy, ones, ones)[4:-4, 4:-4, 2:] == [1, 0]).all()
    rho[:, 20:] *= 1.1
    flat, nearer = np.moveaxis(own_features(rho, gx, gy, ones, ones)[..., 2:], -1, 0)
    assert flat[15, 19] == pytest.approx(14 / 24)  # of five columns, two lie on the other surface
    assert nearer[15, 19] == pytest.approx(10 / 24)  # 2 and 4 columns to the right
    assert nearer[15, 20] == 0  # from there the other surface is further off


def test_what_agrees_and_is_supported_is_more_probable():
    rising = [logistic(np.array([value, value, value, 0.0]), OWN_WEIGHTS) for value in (0.0, 0.5, 1.0)]
    assert rising[0] < 0.1 < rising[1] < rising[2]


def believed(same=0.0, through=0.0, before=0.0):
    """The probability in the middle of a textured plane that four partners could see, by what they see."""
    rho, gx, gy = a_plane()
    made = {"rho": rho, "gx": gx, "gy": gy, "agreement": np.full_like(rho, 0.85), "support": np.full_like(rho, 0.8)}
    made["probability"] = logistic(
        own_features(*(made[key] for key in ("rho", "gx", "gy", "agreement", "support"))), OWN_WEIGHTS
    )
    made |= {"belief": made["probability"], "sigma": 0.003 * rho}
    counts = {"same": same, "through": through, "before": before, "count": 1 + round(same), "asked": 4}
    views = {key: np.full_like(rho, count) for key, count in counts.items()}
    gray = np.random.default_rng(0).normal(128, 20, rho.shape)
    return float(probability_network()(final_features(made, views, gray, 400.0))[15, 15])


def test_views_that_see_the_same_make_a_depth_probable():
    alone = believed()
    assert alone < believed(same=1) < believed(same=2) < believed(same=3)
    assert alone < 0.8 < believed(same=3)  # the default keeps what another image confirms
    assert believed(before=2) < believed(same=1)
    assert believed(through=2) <= believed(through=1) <= alone
    assert believed(same=2, through=1) < believed(same=2)


def test_the_network_follows_the_sign_of_what_speaks_for_a_depth_or_against_it():
    network = probability_network()
    rng = np.random.default_rng(2)
    features = rng.normal(network.mean, network.deviation, (500, len(network.mean)))
    assert {-1, 0, 1} == set(signs().tolist())
    for number in np.flatnonzero(signs()):
        more = features.copy()
        more[:, number] += network.deviation[number] * rng.uniform(0, 2, len(more))
        change = signs()[number] * (network(more) - network(features))
        assert change.min() > -1e-6, FEATURES[number]


def test_the_network_is_what_was_written_and_takes_maps_and_rows_alike():
    network = probability_network()
    again = ProbabilityNetwork.from_dict(network.to_dict())
    features = np.random.default_rng(1).normal(network.mean, network.deviation, (70, 5, len(network.mean)))
    found = network(features)
    assert found.shape == (70, 5)
    assert np.array_equal(found, again(features))
    assert np.allclose(found.ravel(), network(features.reshape(350, -1)), atol=1e-6)
    by_hand = (features[3, 2] - network.mean) / network.deviation
    for weights, bias in network.layers[:-1]:
        by_hand = np.tanh(by_hand @ weights + bias)
    weights, bias = network.layers[-1]
    assert found[3, 2] == pytest.approx(1 / (1 + np.exp(-(by_hand @ weights + bias)[0])), abs=1e-5)


def test_the_mean_around_a_pixel_is_of_what_is_as_bright():
    gray, values = np.full((60, 60), 220.0), np.zeros((60, 60))
    gray[:, :30], values[:, :30] = 80, 4.0
    found = guided_mean(values, gray, 8)
    assert np.abs(found - values)[20:40, 12:48].max() < 0.1


def test_the_sky_beside_a_roof_is_believed_as_the_sky_is():
    """Pixels of the sky along a roof's edge look sure, since their patches show the edge; all other sky does not."""
    gray, own = np.full((60, 60), 220.0), np.full((60, 60), 0.1)
    gray[:, :30], own[:, :34] = 80, 0.95  # the roof, and four columns of sky
    found = belief(own, gray)
    assert found[30, 26:29].min() > 0.8
    assert found[30, 31:34].max() < 0.6  # of the sky within 8 pixels of it, half is not believed
    flat = belief(own, np.full_like(gray, 100))  # without an edge in the picture it is the mean around
    assert flat[30, [33, 34]].mean() == pytest.approx((0.95 + 0.1) / 2, abs=0.02)


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """The plan of a map whose depth is exact but for a patch of the third image that floats, and one that lies too deep."""
    folder = tmp_path_factory.mktemp("exact")
    views = posed_views(load_model(write_map(folder)))
    plan = DensePlan(Workspace(folder / "dense"), views, [[k for k in range(5) if k != n] for n in range(5)], (), ())
    for number, view in enumerate(views):
        rho = (1 / true_depth(number)).astype(np.float32)
        if number == 2:
            rho[20:30, 50:60] *= 1.3
            rho[20:30, 80:90] *= 0.7
        gy, gx = np.gradient(rho)
        more = {"sigma": 0.002 * rho, "belief": np.full_like(rho, 0.9)}
        plan.workspace.save(GEOMETRIC, view.name, rho=rho, gx=gx, gy=gy, **more)
    return plan


def test_a_point_in_the_air_is_seen_through_and_a_hidden_one_is_not(exact):
    made = exact.workspace.load(GEOMETRIC, exact.views[2].name)
    seen = see(exact, 2, made)
    wall, floats, deep = np.s_[20:30, 65:75], np.s_[22:28, 52:58], np.s_[22:28, 82:88]
    assert seen.same[wall].min() > 1.5  # two or more of four partners that are believed by 0.9
    assert seen.through[wall].max() == 0
    assert seen.count[wall].min() >= 3
    assert seen.same[floats].max() < 0.01
    assert seen.through[floats].min() > 1.5
    assert seen.same[deep].max() < 0.01
    assert seen.through[deep].max() == 0  # others see the wall before it: they cannot say
    assert seen.before[deep].min() > 1.5
    assert seen.before[wall].max() == 0
    off = np.abs(seen.rho[wall] * 4 - 1)
    assert off.max() < 0.001


def test_pixels_are_compared_with_the_partners_that_see_them():
    gray = np.random.default_rng(0).uniform(0, 255, SIZE[::-1]).astype(np.float32)
    still = Transfer(np.eye(3, dtype=np.float32), np.zeros(3, np.float32))
    flat = np.full_like(gray, 100)
    pictures = [flat, gray, flat, gray, gray, gray]  # two of six show something else
    cost = PatchCost(gray, [Partner(picture, still) for picture in pictures])
    pixels = np.arange(gray.size)
    rho = np.ones(gray.size, np.float32)
    agreement = cost.agreement(pixels, rho, 0 * rho, 0 * rho)
    chosen = cost.choose(agreement)
    assert chosen.sum(0).min() == chosen.sum(0).max() == CHOSEN
    assert not chosen[[0, 2]].any()
    cost.ask(chosen)
    assert np.array_equal(cost.agreement(pixels, rho, 0 * rho, 0 * rho)[[1, 3, 4, 5]], agreement[[1, 3, 4, 5]])
