"""How much a pair of images costs a GPU to launch, all of it: decoding both ways, alignment, confidence, selection."""

import cv2
import numpy as np
import pytest
import torch

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.strategies import auto
from pdc_sfm.matcher import Matcher, PairSettings
from pdc_sfm.network import PDCNet
from pdc_sfm.network.fake_cuda import FakeCuda
from pdc_sfm.network.inference import for_inference
from pdc_sfm.weights import load_network

# the stand-in leans on how torch dispatches: 2.13 is tried, 2.4 aborts
pytest.importorskip("torch", minversion="2.13")

NETWORKS = {"built-in": load_network, "PDC-Net+": lambda: for_inference(PDCNet())}


def photograph(size):
    return np.random.default_rng(0).integers(0, 255, (*size[::-1], 3), np.uint8)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_pair_takes_500_kernels_and_an_encoding_600(network):
    real = NETWORKS[network]()
    with FakeCuda() as gpu, torch.inference_mode():
        matcher = Matcher(gpu.put(real), PairSettings(DenseSettings(method="direct")), device="cuda:0")
        pair = [matcher.encode(photograph((640, 480))) for _ in range(2)]
        matcher.match(*pair)  # what is made once is made
        with gpu.counting() as matching:
            matcher.match(*pair)
        encodings = []
        for size in ((480, 640), (1200, 1600)):
            with gpu.counting() as encoding:
                matcher.estimator.network.encode(torch.rand(1, 3, *size, device="cuda:0"))
            encodings.append(encoding)
    assert matching.kernels <= 500, str(matching)
    assert matching.syncs <= 2, str(matching)
    assert all(encoding.kernels <= 600 for encoding in encodings), "\n".join(map(str, encodings))


@pytest.mark.parametrize("network", NETWORKS)
def test_pairs_that_go_on_after_the_coarse_levels_make_the_host_wait_once_for_all_of_them(network, monkeypatch):
    monkeypatch.setattr(auto, "LEAST", (0.0, 0.0))  # the stand-in's numbers are zeros: all go on
    real = NETWORKS[network]()
    with FakeCuda() as gpu, torch.inference_mode():
        matcher = Matcher(gpu.put(real), PairSettings(DenseSettings(search_below=0.0)), device="cuda:0")
        codes = [matcher.encode(photograph((640, 480))) for _ in range(4)]
        counts = []
        for pairs in ([codes[:2]], [codes[:2], codes[1:3], codes[2:]]):
            matcher.match_batch(pairs)
            with gpu.counting() as count:
                matcher.match_batch(pairs)
            counts.append(count)
    one, three = counts
    assert one.syncs == three.syncs == 1, str(three)  # by what is decided; matches are waited for later
    assert one.kernels <= 500, str(one)  # of a pair by itself; of a block as many for all of them
    assert three.kernels <= 500, str(three)


def test_unrelated_pairs_take_half_of_the_kernels(monkeypatch):
    monkeypatch.setattr(auto, "LEAST", (1.0, 1.0))  # the stand-in's numbers are zeros: none goes on
    monkeypatch.setattr(auto, "search_views", lambda *arguments, **_: arguments[2])  # its numbers decide too
    real = load_network()
    with FakeCuda() as gpu, torch.inference_mode():
        matcher = Matcher(gpu.put(real), PairSettings(DenseSettings(method="auto")), device="cuda:0")
        codes = [matcher.encode(photograph((640, 480))) for _ in range(2)]
        matcher.match(*codes)
        with gpu.counting() as count:
            assert len(matcher.match(*codes)) == 0
    assert count.syncs == 1, str(count)
    assert count.kernels <= 250, str(count)


def test_what_is_folded_into_layers_changes_no_number_and_is_folded_once():
    from dataclasses import replace

    from pdc_sfm.network.settings import COMPACT

    torch.manual_seed(0)
    plain = PDCNet(replace(COMPACT, passes=())).eval()
    for module in plain.modules():
        if isinstance(module, torch.nn.Conv2d) and module.bias is not None:
            torch.nn.init.normal_(module.bias, std=0.3)
    images = torch.rand(2, 1, 3, 264, 320)
    with torch.no_grad():
        expected = plain.decode(*map(plain.encode, images))
        fast = for_inference(for_inference(plain))
        found = fast.decode(*map(fast.encode, images))
    for one, other in zip(found, expected):
        for name in ("flow", "log_var", "logits"):
            a, b = getattr(one, name), getattr(other, name)
            assert (a - b).abs().max() < 1e-4 * b.abs().max(), (one.level, name)


@pytest.mark.parametrize("turn", [cv2.ROTATE_90_CLOCKWISE, None], ids=["turned", "unrelated"])
def test_a_search_on_a_gpu_finds_what_it_finds_on_a_cpu(turn):
    """Its decisions depend on what is found, so the stand-in computes values here."""
    rng = np.random.default_rng(4)
    images = [cv2.resize(rng.integers(0, 255, (24, 32, 3), np.uint8), (320, 256), interpolation=cv2.INTER_CUBIC)]
    if turn is None:
        images.append(cv2.resize(rng.integers(0, 255, (24, 32, 3), np.uint8), (320, 256)))
    else:
        images.append(cv2.rotate(images[0], turn))
    real, settings = load_network(), PairSettings(DenseSettings(min_side=256))
    on_cpu = Matcher(real, settings, device="cpu")
    expected = on_cpu.match(*map(on_cpu.encode, images))
    with FakeCuda(values=True) as gpu, torch.inference_mode():
        matcher = Matcher(gpu.put(real), settings, device="cuda:0")
        codes = [matcher.encode(image) for image in images]
        found = matcher.match(*codes)
    assert abs(len(found) - len(expected)) <= 0.01 * len(expected)
    assert (len(expected) > 5000) == (turn is not None)
