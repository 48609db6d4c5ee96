"""Transforms that make a trained network faster without changing its results. It cannot be trained afterwards."""

from __future__ import annotations

import torch
from torch import nn

from pdc_sfm.device import Precision
from pdc_sfm.network.model import Level, PDCNet
from pdc_sfm.network.settings import NetworkSettings
from pdc_sfm.network.uncertainty import SliceMLP


@torch.no_grad()
def for_inference(network: PDCNet, precision: Precision = "float32") -> PDCNet:
    """Fold batch norms into their convolutions and store the weights channels-last. Works in place, returns the network.

    float16 and bfloat16 run the convolutions in 16 bits: for devices that are made for it. They change numbers.
    """
    network.eval().requires_grad_(False)
    network.precision = getattr(torch, precision) if precision in ("float16", "bfloat16") else None
    for module in list(network.modules()):
        if isinstance(module, nn.Sequential) and len(module) == 2 and isinstance(module[1], nn.BatchNorm2d):
            module[0] = nn.utils.fuse_conv_bn_eval(module[0], module[1])
            module[1] = nn.Identity()
    for level in network.levels.values():
        _fold_constants(level, network.settings)
    return network.to(memory_format=torch.channels_last)


def _fold_constants(level: Level, settings: NetworkSettings) -> None:
    """Numbers that maps are multiplied by, or that are added to them, become part of a layer. A second time it does nothing."""
    if settings.soft_argmax and level.fixed_sharpness is None:
        level.fixed_sharpness = sharpness = level.temperature.exp().item()
        # the correlation itself is multiplied, and layers divide by it
        if level.is_local and settings.correlation == "plain":
            level.correlation_scale, level.fixed_sharpness = sharpness, 1.0
            level.decoder.conv_0[0].weight[:, : level.volume] /= sharpness
            if level.slices is not None:
                level.slices.conv_0[0].weight /= sharpness
    if not level.is_local:  # what it sees of a flow is zero
        first = level.decoder.conv_0[0]
        first.weight, first.in_channels = nn.Parameter(first.weight[:, : level.volume], False), level.volume
    for layer, skip in (("conv_2", "conv0_skip"), ("conv_4", "conv2_skip")):
        layer, skip = getattr(level.decoder, layer)[0], getattr(level.decoder, skip)[0]
        if skip.bias is not None:
            layer.bias += skip.bias
            skip.bias = None
    if level.predictor is not None:
        level.constraint.fold(getattr(level.predictor, "output", level.predictor))
        if isinstance(level.slices, SliceMLP):
            level.slices.fold(level.predictor.conv_0[0])
