"""Weights of keypoint networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from pdc_sfm.errors import CheckpointError
from pdc_sfm.weights import read_tensors


def load_state(network: nn.Module, path: Path | str, rename: Callable[[str], str] = str) -> None:
    """Fill the network from a weights file, whose entries `rename` translates; every entry must fit."""
    found = {rename(name): value.float() for name, value in read_tensors(path)[0].items()}
    wanted = network.state_dict()
    problems = (
        ("missing", wanted.keys() - found.keys()),
        ("unexpected", found.keys() - wanted.keys()),
        ("of another shape", {n for n in wanted.keys() & found.keys() if wanted[n].shape != found[n].shape}),
    )
    wrong = [f"{len(names)} {what} (such as {min(names)})" for what, names in problems if names]
    if wrong:
        raise CheckpointError(f"{path} does not hold the weights of {type(network).__name__}: {', '.join(wrong)}")
    network.load_state_dict(found)
