"""A training step and the detectors on a GPU, without one: nothing lies on two devices, and the numbers are the CPU's."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import TINY, make_settings, make_source

from pdc_sfm.keypoints import disk, superpoint
from pdc_sfm.network.fake_cuda import FakeCuda
from pdc_sfm.training.batch import collate
from pdc_sfm.training.initial import initial_network
from pdc_sfm.training.step import Objective

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


@pytest.fixture(params=NETWORKS)
def step(request):
    """A network with its loss, and a batch, on the CPU."""
    torch.manual_seed(0)
    settings = make_settings(network=NETWORKS[request.param], descriptors=DESCRIPTORS)
    network = initial_network(settings).train()
    return Objective(network, settings), collate([make_source(settings).sample(0, (64, 64))])


def test_the_loss_of_a_batch_stays_on_the_gpu(step):
    objective, batch = step
    with FakeCuda(values=True) as gpu:
        loss, parts = gpu.put(objective)(gpu.put(batch), 0)
        assert loss.device.type == "cuda"
        found = loss.item()
    expected, _ = objective(batch, 0)
    assert found == pytest.approx(expected.item(), rel=1e-4)
