"""Deterministic weights for the parity cases: every tensor is a function of its name, its shape and a seed.

The same recipe fills the network that produced the expected outputs, so no weight file is needed.
"""
import zlib

import numpy as np


def tensor_for(name: str, shape, seed: int = 0) -> np.ndarray:
    rng = np.random.Generator(np.random.PCG64([zlib.crc32(name.encode()), seed]))
    leaf = name.rsplit(".", 1)[-1]
    if leaf == "num_batches_tracked":
        return np.zeros(shape, np.int64)
    if leaf == "running_var":
        return rng.uniform(0.6, 1.4, shape).astype(np.float32)
    if leaf == "running_mean":
        return (0.1 * rng.standard_normal(shape)).astype(np.float32)
    if leaf == "target_fg":
        return rng.uniform(0.8, 1.2, shape).astype(np.float32)
    if leaf == "target_bg":
        return (0.05 * rng.standard_normal(shape)).astype(np.float32)
    if leaf == "scaling":
        return rng.uniform(0.8, 1.2, shape).astype(np.float32)
    if leaf == "log_step_length":
        return np.full(shape, -1.0, np.float32)
    if leaf == "filter_reg":
        return np.full(shape, 0.05, np.float32)
    if "label_map_predictor" in name or "spatial_weight_predictor" in name:
        k = np.arange(shape[1], dtype=np.float32).reshape(1, -1, 1, 1) * 0.5
        base = np.exp(-0.5 * k**2) if "label_map" in name else np.ones_like(k)
        return (base * rng.uniform(0.9, 1.1, shape)).astype(np.float32)
    if "target_mask_predictor" in name:
        k = np.arange(shape[1], dtype=np.float32).reshape(1, -1, 1, 1) * 0.5
        return (4.0 * np.tanh(2.0 - k) * rng.uniform(0.9, 1.1, shape)).astype(np.float32)
    if leaf in ("weight1", "weight2"):
        return (0.02 * rng.standard_normal(shape)).astype(np.float32)
    if name.startswith("deconv"):  # bilinear upsampling, slightly perturbed
        if leaf == "bias":
            return np.zeros(shape, np.float32)
        t = np.array([0.25, 0.75, 0.75, 0.25], np.float32)
        w = np.zeros(shape, np.float32)
        for c in range(shape[0]):
            w[c, c] = np.outer(t, t)
        return (w * rng.uniform(0.97, 1.03, shape)).astype(np.float32)
    if leaf == "bias":
        return (0.02 * rng.standard_normal(shape)).astype(np.float32)
    if len(shape) == 1:  # batch-norm gain
        return rng.uniform(0.8, 1.2, shape).astype(np.float32)
    fan_in = int(np.prod(shape[1:]))
    small = ("predict_flow", "final", "dc_conv7", "predict_uncertainty")
    gain = 0.3 if any(part in name for part in small) else 1.0
    return (gain * np.sqrt(2.0 / fan_in) * rng.standard_normal(shape)).astype(np.float32)


def image_pair(height: int, width: int, seed: int = 0):
    """Two uint8 images (H, W, 3): a smooth random texture, and the same texture sheared, shifted and re-lit."""
    rng = np.random.Generator(np.random.PCG64([777, seed]))
    modes = rng.integers(1, 14, (60, 2))
    phase = rng.uniform(0, 2 * np.pi, (60, 3))
    amp = rng.standard_normal((60, 3)) / np.sqrt(modes.sum(1))[:, None]
    def texture(x, y):
        arg = 2 * np.pi * (modes[:, 0, None, None] * x + modes[:, 1, None, None] * y)
        img = np.stack([(amp[:, c, None, None] * np.sin(arg + phase[:, c, None, None])).sum(0) for c in range(3)], -1)
        return img
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    x, y = x / width, y / height
    ref = texture(x, y)
    qry = texture(0.96 * x + 0.05 * y + 0.02, -0.03 * x + 1.02 * y - 0.015)
    lo, hi = ref.min(), ref.max()

    def to8(im, g):
        return np.clip(255 * np.clip((im - lo) / (hi - lo), 0, 1) ** g, 0, 255).astype(np.uint8)

    return to8(qry, 1.15), to8(ref, 1.0)
