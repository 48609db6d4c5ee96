"""The stand-in for a GPU: what it counts, and that it fails where a GPU would."""

import pytest
import torch
from torch import nn

from pdc_sfm.network.fake_cuda import FakeCuda

# the stand-in leans on how torch dispatches: 2.13 is tried, 2.4 aborts
pytest.importorskip("torch", minversion="2.13")

IMAGE = torch.rand(1, 3, 8, 8)
BRIGHT, FIRST = int((IMAGE > 0.5).sum()), IMAGE[:, 0].sum().item()


@pytest.fixture(params=["with gradients", "inference"], autouse=True)
def mode(request):
    with torch.inference_mode(request.param == "inference"):
        yield


def counted(work, values=True):
    with FakeCuda(values) as gpu:
        image = gpu.put(IMAGE)
        with gpu.counting() as count:
            work(image)
    return count.kernels, count.syncs


@pytest.mark.parametrize(
    ("work", "kernels", "syncs"),
    [
        (lambda x: x + 1, 1, 0),
        (lambda x: x.flatten(2).transpose(1, 2)[:, :4].expand(2, -1, -1), 0, 0),
        (lambda x: torch.empty_like(x), 0, 0),
        (lambda x: torch.zeros_like(x), 1, 0),
        (lambda x: x.permute(0, 2, 3, 1).reshape(-1), 1, 0),  # not a view: a copy
        (lambda x: nn.functional.interpolate(x, (4, 4), mode="bilinear"), 1, 0),
        (lambda x: x.to(torch.float16), 1, 0),
        (lambda x: x.cpu(), 0, 1),
        (lambda x: x.to("cpu", non_blocking=True), 0, 0),
        (lambda x: x.sum().item(), 1, 1),
        (lambda x: bool((x > 2).any()), 2, 1),
        (lambda x: x.new_tensor((1.0, 2.0)), 0, 1),
        (lambda x: torch.tensor((1.0, 2.0), device=x.device), 0, 1),
        (lambda x: torch.full((2,), 1.0, device=x.device), 1, 0),
        (lambda x: x * torch.tensor(2.0), 1, 0),  # passed as a number
        (lambda x: (x > 0.5).nonzero(), 2, 1),
        (lambda x: x[x > 0.5], 2, 1),
        (lambda x: x.masked_fill(x > 0.5, 0.0), 2, 0),
        (lambda x: x[:, torch.arange(2)], 1, 1),  # the index comes from the host
    ],
)
def test_kernels_and_syncs(work, kernels, syncs):
    assert counted(work) == (kernels, syncs)


def test_two_devices_fail():
    with pytest.raises(RuntimeError, match="two devices"):
        counted(lambda x: x + torch.ones(8))


def test_a_convolution_of_two_devices_fails():
    """Which the fake mode alone lets pass."""
    with FakeCuda() as gpu:
        convolution = gpu.put(torch.nn.Conv2d(3, 2, 3))
        image = gpu.put(torch.rand(1, 3, 8, 8), torch.device("cpu"))
        with pytest.raises(RuntimeError, match="two devices"):
            convolution(image)


def test_values_follow_the_device():
    with FakeCuda(values=True) as gpu:
        image = gpu.put(IMAGE)
        bright = image[(image * 2).view(1, 3, 8, 8) > 1]
        image[:, 1:].fill_(3.0)
        assert len(bright) == BRIGHT
        assert image.sum().item() == pytest.approx(FIRST + 2 * 64 * 3)
        assert bright.device.type == image.device.type == "cuda"


def test_modules_autocast_as_on_a_gpu():
    convolution = nn.Conv2d(3, 4, 3)
    with FakeCuda() as gpu:
        network, image = gpu.put(convolution), gpu.put(IMAGE)
        with torch.autocast("cuda", torch.float16):
            assert network(image).dtype == torch.float16
    assert convolution.weight.device.type == "cpu"


def test_a_sync_names_its_line():
    from pdc_sfm.network.warp import warp

    with FakeCuda() as gpu:
        image = gpu.put(IMAGE)
        with gpu.counting() as count:
            image.sum().cpu()
            warp(image, image[:, :2])
    assert count.waits[0] == "_to_copy at the test"
    assert all("network/warp.py" in line for line in count.waits[1:])


def count_of(work):
    with FakeCuda() as gpu:
        image = gpu.put(IMAGE)
        with gpu.counting() as count:
            work(image)
    return count


def test_operations_and_bytes_of_a_convolution():
    weights = torch.ones(4, 3, 3, 3)
    with FakeCuda() as gpu:
        image, weights = gpu.put(IMAGE), gpu.put(weights)
        with gpu.counting() as count:
            nn.functional.conv2d(image, weights, padding=1)
    assert count.flops == 2 * (8 * 8) * 4 * (3 * 3 * 3)
    assert count.nbytes == 4 * (3 * 64 + 4 * 27 + 4 * 64)  # image, weights, output
    assert count.copied == 0


def test_bytes_of_what_is_repeated_count_once():
    assert count_of(lambda x: x[:, :1].expand(1, 3, 8, 8) + 1).nbytes == 4 * (64 + 3 * 64)


def test_what_is_copied_to_the_host_is_counted_in_bytes_and_has_zeros_where_values_are_unknown():
    found = []
    count = count_of(lambda x: found.append((x * 2).cpu().numpy()))
    assert (count.kernels, count.copied) == (1, 4 * 3 * 64)
    assert found[0].shape == (1, 3, 8, 8)
    assert not found[0].any()


def test_what_leaves_inference_mode_is_counted():
    with FakeCuda(values=True) as gpu:
        with torch.inference_mode():
            image = gpu.put(IMAGE) + 1
        with torch.inference_mode(False), gpu.counting() as count:
            found = image[0].cpu().numpy()
    assert (count.copied, count.syncs) == (4 * 3 * 64, 1)
    assert (found == (IMAGE + 1)[0].numpy()).all()
