"""The network on a GPU, without one: few kernels, no waiting, all on one device; and in 16 bits, on the CPU."""

import sys
from pathlib import Path

import pytest
import torch
from half_kernels import HalfKernels

from pdc_sfm.network import for_inference, prepare_image
from pdc_sfm.network.fake_cuda import CUDA, FakeCuda
from pdc_sfm.network.mixture import p_r
from pdc_sfm.weights import load_network

sys.path.insert(0, str(Path(__file__).parent))
from parity_network import build


def published(model="pdcnet_plus"):
    return for_inference(build(model, 0))


NETWORKS = {"built-in": load_network, "PDC-Net+": published, "PDC-Net": lambda: published("pdcnet")}


@pytest.fixture(scope="module", params=NETWORKS)
def network(request):
    return NETWORKS[request.param]()


@pytest.fixture(scope="module")
def codes(network, photographs):
    with torch.inference_mode():
        return [network.encode(x) for x in photographs]


@pytest.fixture(scope="module")
def exact(network, codes):
    """Every level in float32."""
    with torch.inference_mode():
        return network.decode(*codes)


@pytest.mark.parametrize("size", [(480, 640), (1200, 1600)])
def test_encoding_and_decoding_launch_few_kernels_and_never_wait(network, size):
    with FakeCuda() as gpu, torch.inference_mode():
        on_gpu = gpu.put(network)
        image = torch.rand(1, 3, *size, device=CUDA)
        with gpu.counting() as encoding:
            code = on_gpu.encode(image)
        both = code.cat([code, code])
        with gpu.counting() as decoding:
            on_gpu.decode(both, both)
        print(encoding, decoding, sep="\n")
        assert encoding.kernels <= 600
        assert decoding.kernels <= 500
        assert encoding.syncs == decoding.syncs == 0


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_16_bits_are_finite_and_near_float32_at_every_level(network, precision, photographs, exact, monkeypatch):
    monkeypatch.setattr(network, "precision", getattr(torch, precision))
    with torch.no_grad(), HalfKernels() as kernels:  # inference mode hides what convolutions are made of
        found = network.decode(*(network.encode(x) for x in photographs))
    assert kernels.count > 0
    for a, b in zip(exact, found):
        sure = p_r(a.log_var, a.logits)[:, 0] > 0.3
        off = (a.flow - b.flow).norm(dim=1)
        print(
            f"level {a.level}: {off[sure].median():.4f} px in {int(sure.sum())} sure cells, {off.median():.4f} in all"
        )
        for x, y in ((a.flow, b.flow), (a.log_var, b.log_var), (a.logits, b.logits)):
            assert torch.isfinite(y).all()
            assert (x - y).abs().median() < {"float16": 0.02, "bfloat16": 0.15}[precision] * x.abs().max()
        if network.settings.soft_argmax and a.level <= 1:  # its weights are trained: it is sure of something
            assert sure.sum() > 1000
            assert off[sure].median() < {"float16": 0.02, "bfloat16": 0.15}[precision]


def test_codes_in_16_bits_decode_as_others(network, codes, exact):
    with torch.inference_mode():
        found = network.decode(*(code.to(torch.float16) for code in codes))[-1]
    assert found.flow.dtype == torch.float32
    assert (exact[-1].flow - found.flow).abs().median() < 0.02 * exact[-1].flow.abs().max()


def test_surrounding_autocast_leaves_correlation_alone(network, photographs, codes):
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        again = network.encode(photographs[0])
    assert all(torch.equal(codes[0].features[level], again.features[level]) for level in again.features)


@pytest.fixture(scope="module")
def photographs():
    """Two views of one texture, a few pixels apart."""
    import cv2
    import numpy as np

    rng = np.random.default_rng(3)
    layers = [
        cv2.resize(rng.random((n, n, 3), np.float32), (320, 320), interpolation=cv2.INTER_CUBIC) for n in (20, 80, 160)
    ]
    canvas = np.clip(sum(layers) / 3, 0, 1)
    return [prepare_image(np.ascontiguousarray(canvas[s : s + 288, s : s + 288])) for s in (8, 14)]
