"""The road around the network on a GPU, on fake CUDA tensors; and that it computes there what a CPU computes."""

import functools
from unittest import mock

import numpy as np
import pytest
import torch

from pdc_sfm.dense import cells, field, subpixel
from pdc_sfm.dense.estimator import EncodedView
from pdc_sfm.dense.gray import Gray, gray
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.subpixel import align_with_features
from pdc_sfm.dense.views import View
from pdc_sfm.matcher import Matcher, PairSettings, load_matcher
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.network import LevelOutput, PDCNet
from pdc_sfm.network.fake_cuda import FakeCuda
from pdc_sfm.network.inference import for_inference
from pdc_sfm.network.warp import pixel_grid
from pdc_sfm.retrieval.coarse import expected_matches
from pdc_sfm.retrieval.codes import CoarseCodes

# the stand-in leans on how torch dispatches: 2.13 is tried, 2.4 aborts
pytest.importorskip("torch", minversion="2.13")

SIZE = (192, 256)  # height, width


@pytest.fixture
def gpu():
    """A fake GPU. Constants are kept for each device: those of another fake one are forgotten before and after."""
    _forget()
    built_in(), published()  # real ones
    with FakeCuda() as fake, mock.patch.object(torch.cuda, "Event"):
        yield fake
    _forget()


def _forget():
    for module in (cells, field, subpixel):
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Computed as for a GPU, on this CPU."""
    for module in (cells, subpixel):
        monkeypatch.setattr(module, "fused", lambda _: True)


@functools.cache
def built_in():
    return load_matcher(device="cpu").estimator.network


@functools.cache
def published():
    return for_inference(PDCNet())


DIRECT = PairSettings(DenseSettings(method="direct"))


def encoded(gpu, network, size=(640, 480)):
    image = gpu.put(torch.rand(1, 3, *size[::-1]))
    code = network.encode(image)
    view = View.whole(np.zeros((0, 0, 3), np.uint8), size, size)
    return EncodedView(view, code, gray(image, code.high_size))


def outside(count):
    """Waits that are not the network's."""
    return [line for line in count.waits if " at network/" not in line]


def waves(size=SIZE, seed=0):
    """Smooth random texture (1, 1, H, W)."""
    grid, found = pixel_grid(*size, torch.zeros(1)), torch.zeros(1, 1, *size)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        u, v, phase, height = (
            rng.uniform(-0.35, 0.35),
            rng.uniform(-0.35, 0.35),
            rng.uniform(0, 6.28),
            rng.uniform(0.2, 1),
        )
        found += height * torch.sin(u * grid[:, :1] + v * grid[:, 1:] + phase)
    return 0.5 + found / 15


def test_alignment_as_for_a_gpu_gives_what_a_cpu_gives(request):
    reference, query = waves(), waves().roll((3, -2), (2, 3)).flip(3)
    grid = SIZE[0] // 4, SIZE[1] // 4
    places = pixel_grid(*grid, torch.zeros(1))
    flow = torch.cat(
        (4 * (grid[1] - 1 - 2 * places[:, :1]) + 1.0, places[:, 1:] * 0 + 3.4), 1
    )  # mirrored, and some off it
    flow = flow + torch.randn(flow.shape, generator=torch.manual_seed(0)).mul(0.3)
    log_var = torch.rand(1, 2, *grid, generator=torch.manual_seed(1)) + torch.tensor((0.0, 6.0)).view(1, 2, 1, 1)
    logits = torch.randn(1, 2, *grid, generator=torch.manual_seed(2))
    output = LevelOutput(1, flow, log_var, logits, SIZE, SIZE)
    found = align_with_features(output, Gray.of(reference), Gray.of(query))
    request.getfixturevalue("as_on_a_gpu")
    again = align_with_features(output, Gray.of(reference), Gray.of(query))
    assert (found[0].flow - flow).abs().mean() > 0.1
    corners = torch.ones(grid, dtype=torch.bool)  # where maps go on differently
    corners[10:-10] = corners[:, 10:-10] = False
    for one, other, most in (
        (again[0].flow, found[0].flow, 2e-3),
        (again[0].log_var, found[0].log_var, 1e-3),
        (again[1], found[1], 0.02),
    ):
        differences = (one - other)[..., ~corners].abs()
        assert differences.quantile(0.999) < most  # logarithms of what is nearly nothing differ more
        assert differences.median() < most / 100


@pytest.mark.parametrize("network", [built_in, published])
def test_a_pair_makes_the_host_wait_once_at_most(gpu, network):
    with torch.inference_mode():
        matcher = Matcher(gpu.put(network()), DIRECT, device="cuda:0")
        pair = encoded(gpu, matcher.estimator.network), encoded(gpu, matcher.estimator.network)
        matcher.begin([pair])  # constants are copied to the device
        with gpu.counting() as count:
            matcher.begin([pair])
    assert not outside(count), str(count)  # the one copy out is waited for later, by another thread


def test_alignment_and_judging_of_both_directions_take_few_kernels(gpu):
    with torch.inference_mode():
        network = gpu.put(built_in())
        grays = Gray.cat([encoded(gpu, network).gray] * 2)
        shape = (2, 2, 120, 160)
        maps = [gpu.put(torch.rand(shape)) for _ in range(3)]
        output = LevelOutput(1, *maps, (480, 640), (480, 640))
        subpixel.align(output, grays, grays, network.confidence_head)
        with gpu.counting() as count:
            subpixel.align(output, grays, grays, network.confidence_head)
    assert count.syncs == 0, str(count)
    assert count.kernels <= ALIGNING, str(count)


ALIGNING, SELECTING = 140, 34  # kernels of both directions


@pytest.mark.parametrize(
    "select", [SelectSettings(), SelectSettings(confidence="cyclic", directions="forward", stride=8)]
)
def test_selection_takes_few_kernels_and_no_wait(gpu, select):
    from pdc_sfm.matches import kept

    with torch.inference_mode():
        maps = [gpu.put(torch.rand(2, 2, 120, 160)) for _ in range(3)]
        output = LevelOutput(1, *maps, (480, 640), (480, 640))
        for _ in range(2):
            with gpu.counting() as count:
                both = field.field_of(output, (640, 480), (640, 480))
                packed = kept.pack(both, both.reversed(), select)
    assert packed.shape == (2, 3, 120, 160)
    assert count.syncs == 0, str(count)
    assert count.kernels <= SELECTING, str(count)


def test_images_of_other_sizes_are_matched_too_and_estimates_come_by_one_copy(gpu):
    with torch.inference_mode():
        matcher = Matcher(gpu.put(built_in()), DIRECT, device="cuda:0")
        network = matcher.estimator.network
        pair = encoded(gpu, network), encoded(gpu, network, (480, 640))
        matcher.begin([pair])
        with gpu.counting() as count:
            matcher.begin([pair])
        assert not outside(count), str(count)
        output = matcher.estimator._decode([pair])
        aligned = subpixel.align_likely(output, [pair[0].gray], [pair[1].gray], network.confidence_head)
        from pdc_sfm.dense.estimate import on_host

        with gpu.counting() as count:
            host = on_host(aligned)
    assert count.syncs == 1, str(count)
    assert host.flow.device.type == host.logits.device.type == "cpu"
    assert host.logits.shape == (1, 2, 120, 160)


@pytest.mark.parametrize("network", [built_in, published])
def test_the_coarse_stage_of_retrieval_runs_on_the_device(gpu, network):
    with torch.inference_mode():
        there = gpu.put(network())
        code = there.encode_low(gpu.put(torch.rand(3, 3, 256, 256)))
        half = code.to("cpu", torch.float16)
        codes = CoarseCodes(["a", "b", "c"], [(640, 480)] * 3, half)
        reference, query = codes.take([0, 1, 2], "cuda:0"), codes.take([2, 2, 1], "cuda:0")
        output = there.decode(reference, query, last_level=3, passes=1)[-1]
        expected_matches(output, 4.0)
        with gpu.counting() as count:
            found = expected_matches(output, 4.0)
    assert found.shape == (3,)
    assert found.device.type == "cuda"
    assert count.syncs == 0, str(count)


def test_codes_in_half_precision_take_half_the_memory_and_give_the_same_matches():
    image = (255 * waves((272, 320))[0, 0].clamp(0, 1)).byte().numpy()[..., None].repeat(3, -1)
    images = image, np.roll(image, (5, -7), (0, 1))
    settings = PairSettings(DenseSettings(min_side=None))
    found, sizes = [], []
    for kept in ("float32", "float16"):
        matcher = Matcher(built_in(), settings, codes=kept)
        codes = [matcher.encode(one) for one in images]
        found.append(matcher.match(*codes))
        sizes.append(codes[0].code.nbytes)
    assert sizes[1] * 2 == sizes[0]
    assert len(found[0]) > 500
    assert abs(len(found[1]) - len(found[0])) <= 0.005 * len(found[0])


@pytest.mark.parametrize("directions", ["mutual", "both", "forward"])
def test_a_batch_of_both_directions_selects_what_each_alone_selects(as_on_a_gpu, directions):
    """Both directions as one batch, as on a GPU, and one after the other, as on a CPU."""
    image = (255 * waves((272, 320))[0, 0].clamp(0, 1)).byte().numpy()[..., None].repeat(3, -1)
    other = np.roll(image, (5, -7), (0, 1))
    settings = PairSettings(DenseSettings(min_side=None), SelectSettings(directions=directions))
    alone = Matcher(built_in(), settings)
    codes = alone.encode(image), alone.encode(other)
    found = alone.match(*codes)
    together = Matcher(built_in(), settings)
    object.__setattr__(together.estimator, "device", "cuda:0")
    at_once = together.match(*codes)
    assert len(found) > 500
    assert abs(len(at_once) - len(found)) <= 2 + 0.002 * len(found)
    if len(at_once) == len(found):
        np.testing.assert_allclose(at_once.keypoints1, found.keypoints1, atol=0.05)
