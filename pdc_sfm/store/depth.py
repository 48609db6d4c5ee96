"""Depth maps in h5 files, as MegaDepth has them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.store.readers import reading


def read_depth(path: Path | str) -> np.ndarray:
    """The dataset `depth`: (H, W) float32, 0 where it is unknown."""
    with reading(path, "depth map"), h5py.File(path, "r") as file:
        if not isinstance(file.get("depth"), h5py.Dataset):
            raise FormatError(f"{path} has no dataset `depth`: is it a depth map?")
        depth = file["depth"][()]
    if np.ndim(depth) != 2 or depth.dtype.kind not in "fiu":
        raise FormatError(f"{path}: depth has shape {np.shape(depth)}, expected (height, width) of numbers")
    return np.nan_to_num(depth.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
