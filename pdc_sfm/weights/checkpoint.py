"""Weights files: inspects them, loads them into a network, writes our own format.

Ours is safetensors, with the network's settings as JSON in the metadata. The authors' PyTorch files are read without
executing anything in them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from pdc_sfm.device import Precision, resolve_device, set_tf32
from pdc_sfm.errors import CheckpointError, SettingsError
from pdc_sfm.memory import keep_freed
from pdc_sfm.network import PDCNET, PDCNET_PLUS, NetworkSettings, PDCNet, for_inference
from pdc_sfm.paths import check_regular
from pdc_sfm.settings import from_dict, to_dict
from pdc_sfm.weights.parameter_names import is_authors, our_name
from pdc_sfm.weights.tensor_files import read_safetensors, write_safetensors
from pdc_sfm.weights.torch_files import read_torch_file

METADATA_KEY = "pdc_sfm.network"
BUILT_IN = "compact"
KNOWN = {PDCNET_PLUS: "PDC-Net+", PDCNET: "PDC-Net"}
# the authors have offered the same files under both names
AUTHORS_NAMES = (
    ("PDCNet_plus_m.pth.tar", "PDCNet_plus_megadepth.pth.tar"),
    ("PDCNet_m.pth.tar", "PDCNet_megadepth.pth.tar"),
)


@dataclass(frozen=True)
class Checkpoint:
    """The content of a weights file, under our parameter names."""

    path: Path
    form: str  # "safetensors", "PyTorch training checkpoint" or "PyTorch state dict"
    network: str  # the name of the network
    settings: NetworkSettings
    tensors: dict[str, Tensor]
    missing: tuple[str, ...]  # names the network has and the file has not
    unexpected: tuple[str, ...]  # names the file has and the network has not
    misshapen: tuple[str, ...]
    metadata: dict[str, str]

    @property
    def parameters(self) -> int:
        return sum(t.numel() for t in self.tensors.values() if t.is_floating_point())

    def without_confidence_head(self) -> Checkpoint:
        """The network alone: a confidence head is of the weights it was fitted to, and of no others."""
        tensors = {name: tensor for name, tensor in self.tensors.items() if not name.startswith("confidence_head.")}
        return replace(self, settings=replace(self.settings, confidence_channels=()), tensors=tensors)

    def with_own_backbones(self) -> Checkpoint:
        """The same network with a copy of its one backbone for the 256x256 branch."""
        high = "backbone_high."
        low = {f"backbone_low.{n.removeprefix(high)}": t for n, t in self.tensors.items() if n.startswith(high)}
        return replace(self, settings=replace(self.settings, shared_backbone=False), tensors=self.tensors | low)

    @property
    def complete(self) -> bool:
        return not (self.missing or self.unexpected or self.misshapen)


def read_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, str], str]:
    """The named tensors of any accepted weights file, its metadata, and the form of the file."""
    path = under_either_name(path)
    if not path.is_file():
        raise CheckpointError(missing_weights(path))
    with open(path, "rb") as file:
        head = file.read(16)
    if not head:
        raise CheckpointError(f"weights {path} is empty: download it again")
    if len(head) > 8 and head[8:9] == b"{":
        return (*read_safetensors(path), "safetensors")
    content = read_torch_file(path)
    if isinstance(content, Mapping):
        for key in ("state_dict", "net", "model", "extractor"):
            if isinstance(content.get(key), Mapping):
                return _named_tensors(path, content[key]), {}, "PyTorch training checkpoint"
        return _named_tensors(path, content), {}, "PyTorch state dict"
    raise CheckpointError(f"weights {path} holds a {type(content).__name__}, not named tensors")


def read_checkpoint(path: Path | str) -> Checkpoint:
    """Read a file and say which network it holds, and what is missing or unexpected in it."""
    path = under_either_name(path)
    tensors, metadata, form = read_tensors(path)
    if METADATA_KEY in metadata:
        settings = _settings_from(path, metadata[METADATA_KEY])
        tensors = {re.sub(r"^judge\.", "confidence_head.", n): t for n, t in tensors.items()}  # files of version 0.1
        name = KNOWN.get(settings, metadata.get("pdc_sfm.name", f"{settings.backbone} network"))
    elif is_authors(tensors):
        low = any(n.removeprefix("module.").startswith("pyramid_256.") for n in tensors)
        settings = PDCNET_PLUS if low else PDCNET
        name = KNOWN[settings]
        tensors = {our_name(n) or n: t for n, t in tensors.items()}
    else:
        raise CheckpointError(f"weights {path} hold {_guess(tensors)}, not a network of the PDC-Net family")
    expected = {n: tuple(t.shape) for n, t in PDCNet(settings).state_dict().items()}
    wrong = [
        f"{n}: {tuple(tensors[n].shape)} instead of {shape}"
        for n, shape in expected.items()
        if n in tensors and tuple(tensors[n].shape) != shape
    ]
    return Checkpoint(
        path, form, name, settings, tensors,
        missing=tuple(sorted(set(expected) - set(tensors))),
        unexpected=tuple(sorted(set(tensors) - set(expected))),
        misshapen=tuple(wrong),
        metadata=metadata,
    )  # fmt: skip


def load_network(
    path: Path | str | None = None, device: str | torch.device = "cpu", precision: Precision = "float32"
) -> PDCNet:
    """A network ready for inference: from a file, or the built-in compact one. Precisions below float32 are for GPUs."""
    device = resolve_device(str(device), precision)
    checkpoint = read_checkpoint(weights_path(path))
    network = PDCNet(checkpoint.settings)
    fill(network, checkpoint)
    keep_freed()
    set_tf32(device, precision)
    return for_inference(network, precision).to(device)


def fill(network: PDCNet, checkpoint: Checkpoint) -> None:
    """Put a checkpoint's tensors into a network; anything missing, unexpected or misshapen is an error."""
    if not checkpoint.complete:
        problems = [
            f"{len(names)} {word} (first: {names[0]})"
            for word, names in (
                ("missing", checkpoint.missing),
                ("unexpected", checkpoint.unexpected),
                ("of another shape", checkpoint.misshapen),
            )
            if names
        ]
        raise CheckpointError(
            f"weights {checkpoint.path} do not fit {checkpoint.network}: {', '.join(problems)}; "
            f"`pdc-sfm weights inspect` lists them"
        )
    network.load_state_dict({n: t.float() if t.is_floating_point() else t for n, t in checkpoint.tensors.items()})


def weights_path(weights: Path | str | None) -> Path:
    """The file that a weights setting means: none, or the built-in model's name, is the built-in model."""
    return built_in_path() if weights is None or str(weights) == BUILT_IN else under_either_name(weights)


def under_either_name(path: Path | str) -> Path:
    """The path, or if there is no such file the one beside it that has the authors' other name for it."""
    path = Path(path)
    other = _other_name(path)
    return other if other is not None and not path.exists() and other.is_file() else path


def missing_weights(path: Path) -> str:
    """What to say of a path that is no file."""
    kind = "is a folder" if path.is_dir() else "does not exist"
    other = _other_name(path)
    also = f" (nor does {other.name}, the authors' other name for it)" if other is not None else ""
    return f"weights {path}: {kind}{also}; give a .safetensors, .pth or .pth.tar file"


def _other_name(path: Path) -> Path | None:
    for names in AUTHORS_NAMES:
        if path.name in names:
            return path.with_name(names[1 - names.index(path.name)])
    return None


def built_in_path() -> Path:
    """The model that ships with the package."""
    path = Path(str(resources.files("pdc_sfm.weights") / f"{BUILT_IN}.safetensors"))
    if not path.is_file():
        raise CheckpointError(
            f"the built-in model {path} is missing: install the package again, or pass a weights file"
        )
    return path


def save_network(path: Path | str, network: PDCNet, half: bool = False, extra: Mapping[str, str] | None = None) -> None:
    """Write safetensors with the architecture in the metadata, at once or not at all."""
    save_tensors(path, network.state_dict(), network.settings, half, extra)


def save_tensors(
    path: Path | str,
    tensors: Mapping[str, Tensor],
    settings: NetworkSettings,
    half: bool = False,
    extra: Mapping[str, str] | None = None,
) -> None:
    """Weights with their architecture, as a safetensors file."""
    dtype = torch.float16 if half else torch.float32
    data = {n: (t.to(dtype) if t.is_floating_point() else t).contiguous().cpu().clone() for n, t in tensors.items()}
    write_safetensors(path, data, {METADATA_KEY: json.dumps(to_dict(settings)), **(extra or {})})


def sha256(path: Path | str) -> str:
    """Hash of a file, as published beside downloads."""
    if not Path(path).is_file():
        raise CheckpointError(missing_weights(Path(path)))
    try:
        check_regular(path)
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha256(file)
    except OSError as error:
        raise CheckpointError(f"cannot read weights {path}: {error.strerror or error}") from None


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _named_tensors(path: Path, content: Mapping[Any, Any]) -> dict[str, Tensor]:
    tensors = {str(n): t for n, t in content.items() if isinstance(t, Tensor)}
    if not tensors:
        raise CheckpointError(f"weights {path} hold no named tensors")
    return tensors


def _settings_from(path: Path, text: str) -> NetworkSettings:
    try:
        return from_dict(NetworkSettings, json.loads(text))
    except (ValueError, SettingsError) as error:
        raise CheckpointError(f"weights {path}: its description of the network is not readable: {error}") from None


def _guess(tensors: Mapping[str, Tensor]) -> str:
    if "conv1a.weight" in tensors and "convDb.weight" in tensors:
        return "SuperPoint (use it with `pdc-sfm keypoints`)"
    shown = ", ".join(list(tensors)[:3])
    return f"{len(tensors)} tensors of an unknown network ({shown}, ...)"
