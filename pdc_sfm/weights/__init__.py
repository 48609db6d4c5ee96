"""Weights files and the model that ships with the package."""

from pdc_sfm.weights.checkpoint import (
    Checkpoint,
    built_in_path,
    fill,
    load_network,
    read_checkpoint,
    read_tensors,
    save_network,
    sha256,
    weights_path,
)

__all__ = [
    "Checkpoint",
    "built_in_path",
    "fill",
    "load_network",
    "read_checkpoint",
    "read_tensors",
    "save_network",
    "sha256",
    "weights_path",
]
