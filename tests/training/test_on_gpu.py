"""A training step and the detectors on a GPU, without one: nothing lies on two devices, and the numbers are the CPU's."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import TINY, make_settings, make_source
from torch import nn

from pdc_sfm.keypoints import disk, superpoint
from pdc_sfm.network.fake_cuda import CUDA, FakeCuda
from pdc_sfm.training import resume
from pdc_sfm.training.batch import collate
from pdc_sfm.training.initial import initial_network
from pdc_sfm.training.machine import Group
from pdc_sfm.training.step import Stepper
from pdc_sfm.training.validation import validate

pytest.importorskip("torch", minversion="2.13")
NETWORKS = {"compact": TINY, "paper": replace(TINY, normalize_local=False, correlation="gocor")}
DESCRIPTORS = {"iterations": 0, "weight": 0.5, "samples": 32}


@pytest.fixture
def image():
    return torch.rand(3, 48, 64, generator=torch.Generator().manual_seed(0))


def superpoint_of(image):
    return superpoint.SuperPoint(), image[0], {"max_keypoints": 50, "threshold": 0.0, "border": 4}, superpoint.detect


def disk_of(image):
    return disk.Disk(), image, {"max_keypoints": 50, "nms_radius": 4}, disk.detect


@pytest.mark.parametrize("make", [superpoint_of, disk_of])
def test_detectors_stay_on_the_gpu(make, image):
    torch.manual_seed(0)
    network, image, options, detect = make(image)
    expected = detect(network.eval(), image, **options)
    assert len(expected.xy) > 10
    with FakeCuda(values=True) as gpu:
        found = detect(gpu.put(network), gpu.put(image), **options)
    assert np.array_equal(found.xy, expected.xy)
    assert np.allclose(found.scores, expected.scores, atol=1e-5)
    assert np.allclose(found.descriptors, expected.descriptors, atol=1e-4)


@pytest.mark.parametrize("make", [superpoint_of, disk_of])
def test_an_image_left_on_the_host_fails(make, image):
    network, image, options, detect = make(image)
    with FakeCuda(values=True) as gpu, pytest.raises(RuntimeError, match="two devices"):
        detect(gpu.put(network.eval()), gpu.put(image, torch.device("cpu")), **options)


CLIPPED = {"name": "adamw", "rate": 2e-3, "average": 0.9, "clip": 1.0}
HOST = torch.device("cpu")


def gpu_stepper(gpu, network, settings, **scaler):
    """Without a precision in its settings it learns in float16, as on a GPU."""
    stepper = Stepper(gpu.put(network), settings, CUDA, Group())
    stepper.scaler = torch.amp.GradScaler("cuda", enabled=stepper.scaler.is_enabled(), **scaler)
    return stepper


# The published network's correlation is trained at length by `make endurance`: it takes a minute of the tests.
@pytest.fixture(params=["compact", pytest.param("paper", marks=pytest.mark.endurance)])
def made(request):
    """Settings as a function of what changes, a network and a batch on the CPU."""
    torch.manual_seed(0)
    changes = {"network": NETWORKS[request.param], "descriptors": DESCRIPTORS, "optimizer": CLIPPED}
    settings = make_settings(**changes)
    batch = collate([make_source(settings).sample(0, (64, 64))])
    return lambda **more: make_settings(**changes, **more), initial_network(settings).train(), batch


def test_a_step_on_the_gpu_continues_as_on_the_cpu(made, tmp_path):
    """Forward, loss, backward, clipping, optimizer, average: on one device, with the CPU's results.

    The state that it continues is read onto the host; network, optimizer and average take it to their device.
    """
    make, network, batch = made
    own = Stepper(copy.deepcopy(network), make(), HOST, Group())
    own.step(batch, 0)
    moments = resume.optimizer_tensors(own.optimizer, own.names)
    states = [dict(some.state_dict()) for some in (own.network, own.result)]
    with FakeCuda(values=True) as gpu:
        stepper = gpu_stepper(gpu, network, make(precision="float32"))
        for some, state in zip((stepper.network, stepper.result), states):
            resume.load_network_tensors(some, gpu.put(state, HOST), tmp_path)
        resume.load_optimizer(stepper.optimizer, stepper.names, gpu.put(moments, HOST))
        found = stepper.step(gpu.put(batch), 1)
        after = [dict(some.state_dict()) for some in (stepper.network, stepper.result)]
    assert found == pytest.approx(own.step(batch, 1), rel=1e-4, nan_ok=True)
    for state, result in zip(after, (own.network, own.result)):
        for name, x in result.state_dict().items():
            assert state[name].device == CUDA
            assert torch.allclose(state[name].value, x, rtol=1e-3, atol=1e-5), name


def test_a_step_in_float16_with_scaled_gradients_stays_on_the_gpu(made):
    make, network, batch = made
    with FakeCuda(values=True) as gpu:
        stepper = gpu_stepper(gpu, network, make(), init_scale=32.0, growth_interval=1)
        values = stepper.step(gpu.put(batch), 0)
        moved = [
            not torch.equal(new.value, old) for new, old in zip(stepper.network.parameters(), network.parameters())
        ]
        assert stepper.scaler.is_enabled()
        assert stepper.scaler.get_scale() == 64.0  # nothing overflowed: the next step's scale is twice as large
    assert np.isfinite(values["gradient"])
    assert np.mean(moved) > 0.5


def test_validation_on_the_gpu_gives_the_figures_of_the_cpu(made):
    _, network, batch = made
    with FakeCuda(values=True) as gpu:
        found = validate(gpu.put(network), [gpu.put(batch)])
    assert found == pytest.approx(validate(network, [batch]), rel=1e-4, nan_ok=True)


# --- that these tests can fail: one thing is put on the host ---------------------------------------------------------


class Layers(nn.Sequential):
    """In place of a network: three layers, whose output is squared."""

    settings = TINY

    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3))


@pytest.fixture
def scaled():
    """A step of those layers, with scaled gradients, on the GPU; and an image."""
    torch.manual_seed(0)
    layers, image = Layers(), torch.rand(2, 3, 8, 8)
    with FakeCuda(values=True) as gpu:
        stepper = gpu_stepper(gpu, layers, make_settings(optimizer=CLIPPED), init_scale=32.0)
        stepper.between = lambda x: x
        stepper.objective = lambda image, iteration: (stepper.between(stepper.network(image)).square().mean(), {})
        yield stepper, gpu.put(image)


class GradientOnHost(torch.autograd.Function):
    """An identity whose gradient is on the host."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.cpu()


def gradient(stepper):
    stepper.between = GradientOnHost.apply


def moments(stepper):
    for memory in stepper.optimizer.state.values():
        memory["exp_avg"] = memory["exp_avg"].cpu()


def average(stepper):
    layer = stepper.average.network[0]
    layer.weight = nn.Parameter(layer.weight.detach().cpu(), False)


def buffers(stepper):
    stepper.network[1].running_mean = stepper.network[1].running_mean.cpu()


@pytest.mark.parametrize("put_on_host", [gradient, moments, average, buffers])
def test_what_is_left_on_the_host_fails(put_on_host, scaled):
    stepper, image = scaled
    stepper.step(image, 0)
    put_on_host(stepper)
    with pytest.raises(RuntimeError, match="devices"):
        stepper.step(image, 1)


def test_an_overflow_on_the_gpu_leaves_the_step_out(scaled):
    stepper, image = scaled
    stepper.scaler = torch.amp.GradScaler("cuda", init_scale=2.0**126)
    before = [x.detach().numpy().copy() for x in stepper.network.parameters()]
    stepper.step(image * 1e4, 0)
    assert stepper.scaler.get_scale() == 2.0**125
    assert all((x.detach().numpy() == old).all() for x, old in zip(stepper.network.parameters(), before))
