"""Local and global correlation against their definitions."""

import pytest
import torch

from pdc_sfm.network.correlation import Tiles, cut_mean, expected_displacement, global_correlation
from pdc_sfm.network.gocor import LocalGOCor, distance_bins
from pdc_sfm.network.warp import rescale_flow, warp


def shifted_products(reference, query, radius):
    """The definition: one product of the two maps per displacement."""
    height, width = reference.shape[-2:]
    padded = torch.nn.functional.pad(query, (radius,) * 4)
    return torch.stack(
        [
            (reference * padded[..., dy : dy + height, dx : dx + width]).mean(1)
            for dy in range(2 * radius + 1)
            for dx in range(2 * radius + 1)
        ],
        1,
    )


def local_correlation(reference, query, radius):
    """The same by tiles."""
    tiles = Tiles.of(query, radius)
    return tiles.windows(tiles.multiply(cut_mean(reference)))


@pytest.mark.parametrize("size", [(8, 8), (13, 17), (3, 30), (16, 9)])
@pytest.mark.parametrize("radius", [2, 4])
def test_local_correlation_equals_the_shifted_products(size, radius):
    a, b = torch.randn(2, 2, 6, *size, dtype=torch.float64)
    assert torch.allclose(local_correlation(a, b, radius), shifted_products(a, b, radius), atol=1e-12)


def test_local_correlation_has_the_gradients_of_the_shifted_products():
    a, b = (torch.randn(1, 3, 9, 10, dtype=torch.float64, requires_grad=True) for _ in range(2))
    weights = torch.randn(1, 81, 9, 10, dtype=torch.float64)
    ours = torch.autograd.grad((local_correlation(a, b, 4) * weights).sum(), (a, b))
    direct = torch.autograd.grad((shifted_products(a, b, 4) * weights).sum(), (a, b))
    for x, y in zip(ours, direct):
        assert torch.allclose(x, y, atol=1e-12)


def test_global_correlation_holds_the_query_position_in_its_channels():
    reference, query = torch.zeros(1, 4, 3, 5), torch.zeros(1, 4, 3, 5)
    reference[0, 2, 1, 3] = 2.0
    query[0, 2, 2, 4] = 3.0
    correlation = global_correlation(reference, query)
    assert correlation[0, 2 * 5 + 4, 1, 3] == 6.0
    assert correlation.sum() == 6.0


def test_expected_displacement_of_a_clear_peak_is_its_displacement():
    correlation = torch.zeros(1, 81, 2, 2)
    correlation[0, (4 - 2) * 9 + (4 + 3)] = 1.0  # dy = -2, dx = 3
    displacement = expected_displacement(correlation, 4, torch.tensor(50.0))
    assert torch.allclose(displacement, torch.tensor([3.0, -2.0]).view(1, 2, 1, 1).expand(1, 2, 2, 2), atol=1e-4)


def test_distance_bins_interpolate_between_their_centers():
    bins = distance_bins(torch.tensor([0.0, 0.25, 4.5, 9.0], dtype=torch.float64))
    assert bins[:, 0].tolist() == [1] + [0] * 9
    assert bins[:2, 1].tolist() == [0.5, 0.5]
    assert bins[-1].tolist() == [0, 0, 1, 1]  # the last bin is open
    assert torch.allclose(bins.sum(0), torch.ones(4, dtype=torch.float64))


def test_local_filters_follow_steepest_descent_written_plainly():
    """Seven steps with every correlation computed from the filter itself, as shifted products."""
    torch.manual_seed(0)
    features = torch.rand(1, 5, 10, 11, dtype=torch.float64)
    module = LocalGOCor(7, 4).double()
    channels = features.shape[1]
    distance = torch.hypot(*torch.meshgrid(*(torch.arange(-4.0, 5, dtype=torch.float64),) * 2, indexing="ij"))
    y, v, m = (x.view(1, 81, 1, 1) for x in module.objective.maps(distance.flatten()))
    regularization = module.objective.regularization / channels**2
    w = module.scaling * features / ((features**2).mean(1, keepdim=True) + 1e-6)
    padded = torch.nn.functional.pad(features, (4,) * 4)
    neighbors = torch.stack(
        [padded[..., i : i + 10, j : j + 11] for i in range(9) for j in range(9)], 1
    )  # (B,81,C,H,W)
    for _ in range(7):
        c = (w[:, None] * neighbors).sum(2) / channels
        s = (1 - m) / 2 * c.abs() + (1 + m) / 2 * c
        slope = (1 - m) / 2 * c.sign() + (1 + m) / 2
        residual = v * s - v * y
        g = ((v * slope * residual)[:, :, None] * neighbors).sum(1) / channels + regularization * w
        norm = (g**2).sum(1, keepdim=True)
        cg = (g[:, None] * neighbors).sum(2) / channels
        curvature = ((v * slope * cg) ** 2).sum(1, keepdim=True) + regularization * norm
        w = w - module.objective.log_step_length.exp() * norm / curvature.clamp(min=1e-8) * g
    assert torch.allclose(module(features), w, rtol=1e-9, atol=1e-9)


def test_warp_by_whole_pixels_moves_them_and_fills_with_zeros():
    query = torch.arange(12.0).view(1, 1, 3, 4)
    flow = torch.zeros(1, 2, 3, 4)
    flow[:, 0] = 1
    assert torch.allclose(warp(query, flow)[0, 0, :, :3], query[0, 0, :, 1:])
    assert torch.equal(warp(query, flow)[0, 0, :, 3], torch.zeros(3))


def test_flow_between_maps_of_other_sizes_points_to_the_same_places():
    """The reference point (x + .5) / W and its match keep their relative places whatever the sizes."""
    torch.manual_seed(1)
    flow = torch.randn(1, 2, 32, 32, dtype=torch.float64) * 20  # 256x256 branch, stride 8
    scaled = rescale_flow(flow, ((256, 256), (480, 640)), ((256, 256), (720, 512)))
    x = (torch.arange(32, dtype=torch.float64) + 0.5) / 32
    before = x * 256 + flow[0, 0]
    after = x * 640 + scaled[0, 0]
    assert torch.allclose(before / 256, after / 512)
    y = x[:, None]
    assert torch.allclose((y * 256 + flow[0, 1]) / 256, (y * 480 + scaled[0, 1]) / 720)
