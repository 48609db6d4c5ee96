"""Depth maps in h5 files, as MegaDepth has them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from pdc_sfm.errors import FormatError


def read_depth(path: Path | str) -> np.ndarray:
    """The dataset `depth`: (H, W) float32, 0 where it is unknown."""
    try:
        with h5py.File(path, "r") as file:
            if "depth" not in file:
                raise FormatError(f"{path} has no dataset `depth`: is it a depth map?")
            depth = file["depth"][()]
    except OSError as error:
        raise FormatError(f"cannot read depth map {path}: {error}") from None
    if depth.ndim != 2:
        raise FormatError(f"{path}: depth has shape {depth.shape}, expected (height, width)")
    return np.nan_to_num(depth.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
