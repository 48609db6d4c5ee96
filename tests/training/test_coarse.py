"""Training of the 256x256 branch alone."""

from dataclasses import replace

import pytest
import torch
from tiny_training import BASE, TINY, make_settings, run

from pdc_sfm.errors import CheckpointError, SettingsError
from pdc_sfm.network import PDCNet
from pdc_sfm.training.initial import initial_network
from pdc_sfm.training.resume import load_state
from pdc_sfm.weights import save_network

APART = replace(TINY, shared_backbone=False)
COARSE = {
    "network": APART,
    "trained": "coarse",
    "loss": {**BASE["loss"], "level_weights": [1, 1]},
    "optimizer": {**BASE["optimizer"], "fixed_stride": 4},
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Weights of a network with one backbone for both branches."""
    torch.manual_seed(3)
    path = tmp_path_factory.mktemp("shared") / "shared.safetensors"
    save_network(path, PDCNet(TINY))
    return path


def test_a_network_with_two_backbones_begins_with_two_copies_of_one(shared):
    network = initial_network(make_settings(network=APART, start_from=str(shared)))
    image = torch.rand(1, 3, 256, 256)
    with torch.inference_mode():
        low, high = (backbone(image, (16, 8)) for backbone in (network.backbone_low, network.backbone_high))
    assert all(torch.equal(low[stride], high[stride]) for stride in (16, 8))


def test_two_backbones_do_not_begin_a_network_with_one(shared, tmp_path):
    apart = tmp_path / "apart.safetensors"
    save_network(apart, PDCNet(APART))
    with pytest.raises(CheckpointError, match="shared_backbone"):
        initial_network(make_settings(start_from=str(apart)))


def test_only_the_coarse_branch_learns_and_of_its_backbone_what_follows_the_fixed_stride(shared, tmp_path):
    settings = make_settings(**COARSE, start_from=str(shared))
    before = initial_network(settings).state_dict()
    run(settings, tmp_path)
    groups, _ = load_state(tmp_path / "last.safetensors")
    after = groups["network"]
    changed = {name for name in before if not torch.equal(before[name].float(), after[name].float())}
    assert any(name.startswith("levels.4.") for name in changed)
    assert any(name.startswith("backbone_low.lateral.") for name in changed)
    assert any(name.startswith("backbone_low.backbone.blocks.10.") for name in changed)
    first = ("backbone_low.backbone.stem.", *(f"backbone_low.backbone.blocks.{n}." for n in range(3)))
    kept = ("backbone_high.", "levels.2.", "levels.1.", *first)
    assert not [name for name in changed if name.startswith(kept)]


def test_one_backbone_for_both_branches_cannot_learn_for_one_alone():
    with pytest.raises(SettingsError, match="shared_backbone=false"):
        make_settings(trained="coarse")


def test_layers_of_vgg16_are_not_fixed_by_stride():
    with pytest.raises(SettingsError, match="fixed_stride"):
        make_settings(network={"backbone": "vgg16"}, optimizer={**BASE["optimizer"], "fixed_stride": 4})
