"""The network training begins with."""

from __future__ import annotations

import math

import torch

from pdc_sfm.errors import CheckpointError
from pdc_sfm.network import PDCNet
from pdc_sfm.settings import differences, to_dict
from pdc_sfm.training.pretrained import fill_backbone
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.weights import built_in_path, fill, read_checkpoint
from pdc_sfm.weights.checkpoint import BUILT_IN


def initial_network(settings: TrainSettings) -> PDCNet:
    """The network training begins with: given weights, or a fresh one on a pretrained backbone."""
    network = PDCNet(settings.network)
    if not settings.start_from:
        fill_backbone(network, settings.backbone_weights)
        if settings.initial_sigma:
            widen_outliers(network, settings.initial_sigma)
        return network
    given = read_checkpoint(
        built_in_path() if settings.start_from == BUILT_IN else settings.start_from
    ).without_confidence_head()
    if given.settings.shared_backbone and not settings.network.shared_backbone:
        given = given.with_own_backbones()
    changes = differences(to_dict(given.settings), to_dict(settings.network), "network")
    changes = [change for change in changes if "_iterations" not in change]  # GOCor's count of steps is no weight
    if changes:
        raise CheckpointError(f"start_from={settings.start_from} is of another architecture: {'; '.join(changes)}")
    fill(network, given)
    return network


def widen_outliers(network: PDCNet, sigma: float) -> None:
    """Let the last component of every level begin at `sigma` pixels.

    A fresh network's flow is off by tens of pixels, while h = 0 means a sigma of 1.7: the gradient would be
    busy with the variances alone until they have grown.
    """
    for level in network.levels.values():
        if level.predictor is not None:
            bias = getattr(level.predictor, "output", level.predictor).bias
            with torch.no_grad():
                bias[level.constraint.inputs - 1] = 2 * math.log(sigma)
