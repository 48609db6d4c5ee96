"""Weights of keypoint networks: tensors only, nothing in the file is ever executed."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from pdc_sfm.errors import CheckpointError


def load_state(network: nn.Module, path: Path | str, rename: Callable[[str], str] = str) -> None:
    """Fill the network from a .pth file, whose entries `rename` translates; every entry must fit."""
    found = {rename(name): value for name, value in _read_tensors(Path(path)).items()}
    wanted = network.state_dict()
    missing, unexpected = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    shapes = [n for n in wanted.keys() & found.keys() if wanted[n].shape != found[n].shape]
    if missing or unexpected or shapes:
        wrong = [
            f"{len(names)} {what} (such as {sorted(names)[0]})"
            for what, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", shapes))
            if names
        ]
        raise CheckpointError(f"{path} does not hold the weights of {type(network).__name__}: {', '.join(wrong)}")
    network.load_state_dict(found)


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    try:  # both files are of torch's first format; weights_only builds tensors and refuses everything else
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CheckpointError(f"cannot read weights {path}: {error.strerror or error}") from None
    except (pickle.UnpicklingError, zipfile.BadZipFile, RuntimeError, EOFError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:120]
        raise CheckpointError(f"{path} is not a plain weights file: download it again ({reason})") from None
    for key in ("extractor", "state_dict"):  # DISK's publication keeps the tensors under a key
        content = content.get(key, content) if isinstance(content, dict) else content
    if not isinstance(content, dict) or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise CheckpointError(f"{path} holds no table of tensors")
    return content
