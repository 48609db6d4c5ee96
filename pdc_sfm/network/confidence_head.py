"""The confidence head: the probability that an aligned match is right, from features that the network itself lacks.

The confidence head weighs all that is known of a cell (`dense.subpixel` gathers it) and says how likely the cell lies less than a
pixel off. It is fitted to pairs with known truth when the network is trained (`pdc-sfm train calibrate`).
"""

from __future__ import annotations

import itertools

from torch import Tensor, nn

from pdc_sfm.network.decoder import SLOPE

CONFIDENCE_FEATURES = 12  # numbers known of a cell: 5 of `dense.confidence_features.confidences`, 7 of its FIT


class ConfidenceHead(nn.Module):
    """Fully connected layers on each cell's confidence features."""

    def __init__(self, channels: tuple[int, ...]):
        super().__init__()
        sizes = (CONFIDENCE_FEATURES, *channels, 1)
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [nn.Conv2d(inputs, outputs, 1), nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, features: Tensor) -> Tensor:
        """(B, CONFIDENCE_FEATURES, h, w) -> log-odds of being right (B, 1, h, w)."""
        return self.layers(features)
