"""Networks and images of the parity cases: every tensor is a function of its name, its shape and a seed."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import torch

from pdc_sfm.network import PDCNET, PDCNET_PLUS, PDCNet
from pdc_sfm.weights.parameter_names import our_name

OWN = Path(__file__).resolve().parents[1] / "parity"
FOLDER = Path(os.environ.get("PDC_SFM_PARITY_DIR", OWN))


def recipe():
    """The module that makes the weights and the images."""
    spec = importlib.util.spec_from_file_location("parity_weights", OWN / "weights.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def authors_state(model: str, seed: int) -> dict[str, torch.Tensor]:
    """A state dict with the names and shapes of the authors' checkpoint."""
    layout = json.loads((OWN / f"layout_{'plus' if model == 'pdcnet_plus' else 'pdcnet'}.json").read_text())
    make = recipe().tensor_for
    return {name: torch.from_numpy(np.asarray(make(name, shape, seed))) for name, shape in layout.items()}


def build(model: str, seed: int, **iterations: int) -> PDCNet:
    """The network of a case."""
    from dataclasses import replace

    network = PDCNet(replace(PDCNET_PLUS if model == "pdcnet_plus" else PDCNET, **iterations))
    network.load_state_dict({our_name(name): tensor for name, tensor in authors_state(model, seed).items()})
    return network.eval()
