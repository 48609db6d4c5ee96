"""The whole state of a training run in one safetensors file: tensors, and the rest as JSON in its header. No pickle.

One file, replaced at once: whatever happens while it is written, the state before it survives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pdc_sfm.errors import CheckpointError
from pdc_sfm.weights.tensor_files import read_safetensors, write_safetensors

FORMAT = "pdc-sfm training state 1"


def save_state(path: Path, groups: dict[str, dict[str, Tensor]], facts: dict[str, Any]) -> None:
    """Write named groups of tensors and JSON facts. A full disk is an error that leaves the file as it was."""
    tensors = {
        f"{group}/{name}": value.detach().cpu().contiguous().clone()
        for group, values in groups.items()
        for name, value in values.items()
    }
    write_safetensors(path, tensors, {"format": FORMAT, "facts": json.dumps(facts)})


def load_state(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """Read what `save_state` wrote."""
    groups: dict[str, dict[str, Tensor]] = {}
    try:
        tensors, metadata = read_safetensors(path)
    except CheckpointError as error:
        raise CheckpointError(f"cannot continue: {error}; remove it to start afresh") from None
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not the state of a training run: remove it, or choose another output")
    try:
        facts = json.loads(metadata["facts"])
    except (ValueError, KeyError) as error:
        raise CheckpointError(f"cannot read {path}: {error}; remove it to start afresh") from None
    for name, value in tensors.items():
        group, _, key = name.partition("/")
        groups.setdefault(group, {})[key] = value
    return groups, facts


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """The optimizer's memory of each parameter, `name:moment`; `names` are those of its parameters, in order."""
    state = optimizer.state_dict()["state"]
    return {
        f"{names[index]}:{key}": value if isinstance(value, Tensor) else torch.tensor(value)
        for index, moments in state.items()
        for key, value in moments.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Put the memory back. A parameter without one starts without, as it did."""
    state: dict[int, dict[str, Tensor]] = {}
    places = {name: index for index, name in enumerate(names)}
    for key, value in tensors.items():
        name, _, moment = key.rpartition(":")
        if name not in places:
            raise CheckpointError(f"the saved optimizer knows a parameter {name} that the network does not have")
        state.setdefault(places[name], {})[moment] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def load_network_tensors(network: torch.nn.Module, tensors: dict[str, Tensor], where: Path) -> None:
    """Fill a network, or say how its architecture differs from the file's."""
    wanted = network.state_dict()
    missing = sorted(set(wanted) - set(tensors))
    unexpected = sorted(set(tensors) - set(wanted))
    shapes = [name for name in wanted if name in tensors and wanted[name].shape != tensors[name].shape]
    if missing or unexpected or shapes:
        example = (missing or unexpected or shapes)[0]
        raise CheckpointError(
            f"{where} is of another architecture: {len(missing)} missing, {len(unexpected)} unexpected, "
            f"{len(shapes)} differently shaped entries, for example {example}; use its own settings, or another output"
        )
    network.load_state_dict(tensors)
