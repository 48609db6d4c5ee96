"""Arrays to network input."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pdc_sfm.errors import ImageError
from pdc_sfm.pixels import MIN_SIDE


def prepare_image(image: np.ndarray | Tensor, name: str = "image") -> Tensor:
    """An image array as (1, 3, H, W) float32 RGB in [0, 1].

    Takes (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) of uint8, uint16 or floats in [0, 1]. Gray is repeated, transparency dropped.
    """
    array = image.detach().cpu().numpy() if isinstance(image, Tensor) else np.asarray(image)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[-1] not in (1, 3, 4):
        raise ImageError(f"{name} has shape {array.shape}: an image is (H, W), (H, W, 3) or (H, W, 4)")
    height, width = array.shape[:2]
    if min(height, width) < MIN_SIDE:
        raise ImageError(f"{name} is {width}x{height} pixels: at least {MIN_SIDE}x{MIN_SIDE} are needed")
    if array.dtype in (np.uint8, np.uint16):
        scaled = array.astype(np.float32) / np.iinfo(array.dtype).max
    elif array.dtype.kind == "f":
        scaled = array.astype(np.float32)
        if not np.isfinite(scaled).all():
            raise ImageError(f"{name} contains NaN or infinite values")
        if scaled.min() < 0 or scaled.max() > 1:
            raise ImageError(
                f"{name} has values from {scaled.min():.3g} to {scaled.max():.3g}: floating-point images must be in [0, 1]"
            )
    else:
        raise ImageError(f"{name} has {array.dtype} pixels: convert it to uint8, uint16 or floats in [0, 1]")
    rgb = np.repeat(scaled, 3, -1) if scaled.shape[-1] == 1 else scaled[..., :3]
    return torch.from_numpy(np.ascontiguousarray(rgb.transpose(2, 0, 1)))[None]
