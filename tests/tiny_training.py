"""Training of a few iterations on generated textures with a tiny network."""

from __future__ import annotations

import numpy as np

from pdc_sfm.network import NetworkSettings
from pdc_sfm.settings import from_dict
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.training.sources import FixedPairs, SyntheticSource
from pdc_sfm.training.trainer import train

TINY = NetworkSettings(
    backbone="efficientnet_lite0",
    shared_backbone=True,
    pyramid_channels=(8, 8, 8),
    normalize_local=True,
    correlation="plain",
    radius=2,
    decoder_channels=(8, 8, 8, 8, 8),
    refined_levels=(),
    slice_layers="mlp",
    slice_channels=(8, 8, 8, 4),
    predictor_channels=(8, 8),
)
BASE = {
    "network": TINY,
    "loss": {"reduction": "mean", "level_weights": [1, 1, 1, 1], "robust_flow_weight": 1.0, "outlier_weight": 0.5},
    "optimizer": {"name": "adamw", "rate": 2e-3, "average": 0.9},
    "schedule": {"kind": "trapezoid", "iterations": 5, "warm_up": 2},
    "sizes": {"phases": [[0, 64, 1]]},
    "validation": {"pairs": 1, "hard": 1, "unrelated": 1, "size": 64},
    "backbone_weights": "none",
    "device": "cpu",
    "threads": 1,
    "workers": 0,
    "log_every": 1,
}


class Textures:
    """Photographs made of smooth noise."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        import cv2

        coarse = np.random.default_rng(index).integers(0, 255, (24, 24, 3), dtype=np.uint8)
        return cv2.resize(coarse, (128, 128), interpolation=cv2.INTER_CUBIC)

    def other(self, index, rng):
        return (index + 1) % 4


def make_settings(**changes):
    return from_dict(TrainSettings, {**BASE, **changes})


def make_source(settings):
    return SyntheticSource(Textures(), None, settings.pairs, settings.seed)


def run(settings, output, source=None):
    fixed = FixedPairs(Textures(), None, settings.pairs)
    return train(source or make_source(settings), fixed, settings, output, quiet=True)
