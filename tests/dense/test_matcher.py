"""The matcher with a real (untrained) network, and with the ideal one: contract, batches, the one-line API."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.errors import ImageError
from pdc_sfm.images import write_image
from pdc_sfm.matcher import Matcher, PairSettings, match_images
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.network import COMPACT, PDCNet, for_inference, prepare_image
from pdc_sfm.pixels import inside, transform

SHIFT = np.array([[1, 0, 12.0], [0, 1, -7.0], [0, 0, 1]])


def noise(width: int, height: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.fixture(scope="module")
def untrained():
    torch.manual_seed(0)
    narrow = {name: (16,) * 5 for name in ("decoder_channels", "refinement_channels")}
    return for_inference(PDCNet(replace(COMPACT, pyramid_channels=(16,) * 3, slice_channels=(8,) * 4, **narrow)))


def settings(**select) -> PairSettings:
    return PairSettings(
        DenseSettings(subpixel=False, min_side=None, max_side=None, method="direct"), SelectSettings(**select)
    )


def test_the_estimate_is_the_networks_flow_in_original_pixels(untrained):
    image0, image1 = noise(264, 256), noise(264, 256, 1)
    matcher = Matcher(untrained, settings(threshold=0.0))
    estimate = matcher.estimator.estimate(matcher.encode(image0), matcher.encode(image1))
    with torch.inference_mode():
        output = untrained.decode(*(untrained.encode(prepare_image(i)) for i in (image0, image1)))[-1]
    np.testing.assert_allclose(estimate.flow, output.flow[0].permute(1, 2, 0).numpy(), atol=1e-3)
    np.testing.assert_allclose(estimate.logits, output.logits[0].permute(1, 2, 0).numpy(), atol=1e-3)
    assert estimate.stride * estimate.grid_size[0] == 264


@pytest.mark.parametrize("sizes", [((270, 256), (256, 290)), ((17, 300), (40, 16))])
def test_images_of_any_sizes_from_16_pixels_give_matches_inside_both(untrained, sizes):
    matcher = Matcher(untrained, settings(threshold=0.0, directions="both"))
    codes = [matcher.encode(noise(*size, seed)) for seed, size in enumerate(sizes)]
    matches = matcher.match(*codes)
    assert len(matches) > 0
    assert inside(matches.keypoints0, sizes[0]).all()
    assert inside(matches.keypoints1, sizes[1]).all()
    assert matches.keypoints0.dtype == matches.scores.dtype == np.float32


def test_a_batch_gives_the_matches_of_single_pairs(untrained):
    matcher = Matcher(untrained, settings(threshold=0.0))
    codes = [matcher.encode(noise(*size, seed)) for seed, size in enumerate(((256, 256), (256, 256), (264, 256)))]
    pairs = [(codes[0], codes[1]), (codes[2], codes[1]), (codes[1], codes[0])]
    single = [matcher.estimator.estimate(*pair) for pair in pairs]
    for one, batched in zip(single, matcher.estimator.estimate_batch(pairs)):
        np.testing.assert_allclose(one.flow, batched.flow, atol=1e-2)
        np.testing.assert_allclose(one.confidence, batched.confidence, atol=1e-3)
    counts = [len(matches) for matches in matcher.match_batch(pairs)]
    assert counts[0] == counts[2]  # the same pair, reversed
    assert counts[1] == pytest.approx(len(matcher.match(*pairs[1])), abs=3)  # a point may be just on the border


def test_strategies_run_on_the_real_network_and_fall_back(untrained):
    dense = DenseSettings(subpixel=False, min_side=None, method="multiscale", rotations=2, scales=(0.5, 1.0))
    matcher = Matcher(untrained, PairSettings(dense))
    result = match_images(noise(256, 256), noise(256, 272, 1), matcher=matcher)
    assert result.forward.grid_size == (256 // result.forward.stride, 256 // result.forward.stride)
    assert np.isfinite(result.forward.flow).all()
    assert np.isfinite(result.backward.flow).all()


def test_one_line_from_files_to_matches(ideal_network, photograph, tmp_path):
    cameras = np.eye(3), np.linalg.inv(SHIFT)  # the scene's point p is at p in image0, at SHIFT p in image1
    paths = [tmp_path / f"{number}.png" for number in (0, 1)]
    for path, camera in zip(paths, cameras):
        write_image(path, photograph(camera, (248, 240)))
    result = match_images(*paths, matcher=Matcher(ideal_network(), settings()))
    assert len(result.matches) > 5000
    truth = transform(result.matches.keypoints0, SHIFT)
    np.testing.assert_allclose(result.matches.keypoints1, truth, atol=0.1)
    assert result.forward.reference_size == (248, 240)


def test_one_direction_costs_one_decoding(ideal_network, photograph):
    images = [photograph(camera, (128, 120)) for camera in (np.eye(3), SHIFT)]
    for directions, decodings in (("forward", 1), ("both", 2)):
        network = ideal_network()
        matcher = Matcher(network, settings(directions=directions))
        matcher.match(*(matcher.encode(image) for image in images))
        assert (network.encodings, network.decodings) == (2, decodings)


def test_keypoints_are_matched_through_the_flow(ideal_network, photograph):
    matcher = Matcher(ideal_network(), settings())
    codes = [matcher.encode(photograph(camera, (248, 240))) for camera in (np.eye(3), np.linalg.inv(SHIFT))]
    points = np.array([[30.5, 60], [100, 100], [200, 180]], np.float32)
    there = transform(points, SHIFT).astype(np.float32)
    found = matcher.match_keypoints(*codes, points, there[::-1])
    np.testing.assert_array_equal(found.indices1, [2, 1, 0])


def test_an_image_that_is_too_small_is_named(untrained, tmp_path):
    write_image(tmp_path / "tiny.png", noise(8, 30))
    with pytest.raises(ImageError, match=r"tiny\.png is 8x30 pixels"):
        match_images(tmp_path / "tiny.png", noise(64, 64), matcher=Matcher(untrained, settings()))
