"""ImageNet weights under our names."""

import numpy as np
import pytest
import torch

from pdc_sfm.errors import CheckpointError
from pdc_sfm.network import NetworkSettings, PDCNet
from pdc_sfm.training.pretrained import fill_backbone


@pytest.fixture(scope="module")
def lite0_network():
    return PDCNet(
        NetworkSettings(
            backbone="efficientnet_lite0",
            shared_backbone=True,
            pyramid_channels=(8, 8, 8),
            correlation="plain",
            decoder_channels=(8, 8, 8, 8, 8),
            refined_levels=(),
        )
    )


def lite0_file(path, network, without=()):
    """A file with the names of the public weights and random values."""
    generator = torch.Generator().manual_seed(0)
    tensors = {}
    for name, value in network.backbone_high.backbone.state_dict().items():
        if not name.endswith("weight"):
            continue
        theirs, norm = "_conv_stem", "_bn0"
        if name != "stem.conv.weight":
            _, index, part = name.split(".")[:3]
            theirs = f"_blocks.{index}._{part}_conv"
            norm = f"_blocks.{index}._bn{['expand', 'depthwise', 'project'].index(part)}"
        tensors[f"{theirs}.weight"] = torch.randn(value.shape, generator=generator)
        for kind in ("weight", "bias", "running_mean", "running_var"):
            tensors[f"{norm}.{kind}"] = torch.rand(len(value), generator=generator) + 0.5
    for name in without:
        del tensors[name]
    torch.save(tensors, path)
    return tensors


def test_batch_norms_are_folded_into_the_convolutions(tmp_path, lite0_network):
    tensors = lite0_file(tmp_path / "lite0.pth", lite0_network)
    fill_backbone(lite0_network, str(tmp_path / "lite0.pth"))
    layer = lite0_network.backbone_high.backbone.blocks[4].expand
    x = torch.randn(1, 40, 5, 5)
    plain = torch.nn.functional.conv2d(x, tensors["_blocks.4._expand_conv.weight"])
    norm = [tensors[f"_blocks.4._bn0.{kind}"] for kind in ("running_mean", "running_var", "weight", "bias")]
    expected = torch.nn.functional.batch_norm(plain, *norm, eps=1e-3)
    np.testing.assert_allclose(layer.conv(x).detach().numpy(), expected.numpy(), atol=1e-4)


def test_a_file_of_another_backbone_is_refused(tmp_path, lite0_network):
    lite0_file(tmp_path / "cut.pth", lite0_network, without=("_blocks.4._bn0.bias",))
    with pytest.raises(CheckpointError, match="does not hold EfficientNet-lite0"):
        fill_backbone(lite0_network, str(tmp_path / "cut.pth"))


def test_vgg16_is_read_as_torchvision_names_it(tmp_path):
    network = PDCNet(NetworkSettings(shared_backbone=True))
    with pytest.raises(CheckpointError, match=r"vgg16-397923af.pth"):
        fill_backbone(network)
    places = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21)
    widths = (3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512)
    shapes = list(zip(widths[1:], widths))
    tensors = {f"features.{n}.weight": torch.full((*shape, 3, 3), float(n)) for n, shape in zip(places, shapes)}
    tensors |= {f"features.{n}.bias": torch.full(shape[:1], float(n)) for n, shape in zip(places, shapes)}
    torch.save(tensors, tmp_path / "vgg.pth")
    fill_backbone(network, str(tmp_path / "vgg.pth"))
    assert network.backbone_high.level_0[0].weight.unique().tolist() == [0]
    assert network.backbone_high.level_2[2].bias.unique().tolist() == [7]
    assert network.backbone_high.level_4[4].weight.unique().tolist() == [21]
