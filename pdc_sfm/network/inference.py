"""Transforms that change how fast a trained network runs and not what it computes. They end training."""

from __future__ import annotations

import torch
from torch import nn

from pdc_sfm.device import Precision
from pdc_sfm.network.model import PDCNet


@torch.no_grad()
def for_inference(network: PDCNet, precision: Precision = "float32") -> PDCNet:
    """Fold batch norms into their convolutions and store the weights channels-last. Works in place, returns the network.

    float16 and bfloat16 run the convolutions in 16 bits: for devices that are made for it. They change numbers.
    """
    network.eval().requires_grad_(False)
    network.precision = getattr(torch, precision) if precision in ("float16", "bfloat16") else None
    for level in network.levels.values() if network.settings.soft_argmax else ():
        level.fixed_sharpness = level.temperature.exp().item()
    for module in list(network.modules()):
        if isinstance(module, nn.Sequential) and len(module) == 2 and isinstance(module[1], nn.BatchNorm2d):
            module[0] = nn.utils.fuse_conv_bn_eval(module[0], module[1])
            module[1] = nn.Identity()
    return network.to(memory_format=torch.channels_last)
