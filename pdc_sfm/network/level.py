"""The layers of one level of the network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pdc_sfm.network.decoder import Refinement, ResidualDecoder
from pdc_sfm.network.mixture import Constraint
from pdc_sfm.network.settings import NetworkSettings
from pdc_sfm.network.uncertainty import Predictor, SliceMLP, SliceModule
from pdc_sfm.pixels import COARSE_SIDE

GRID = COARSE_SIDE // 16  # side of the coarsest maps


class Level(nn.Module):
    """The layers of one level: decoder, refinement, uncertainty, and the upsampling into it."""

    def __init__(self, number: int, s: NetworkSettings):
        super().__init__()
        is_global = number == 4
        self.is_local = not is_global
        area = s.mixture.low_area if number > 2 else s.mixture.high_area
        self.constraint = Constraint(s.mixture, area)
        mixture = 2 * s.mixture.components if s.uncertainty != "none" and s.propagate and not is_global else 0
        within_branch = number in (3, 1, 0)
        has_feature = number in (1, 0)
        self.up_flow = nn.ConvTranspose2d(2, 2, 4, 2, 1) if within_branch else None
        self.up_feature = nn.ConvTranspose2d(s.decoder_channels[-1], 2, 4, 2, 1) if has_feature else None
        finest = number == s.levels[-1]
        self.radius = s.finest_radius if finest and s.finest_radius else s.radius
        self.volume = volume = GRID**2 if is_global else (2 * self.radius + 1) ** 2  # channels of the correlation
        narrow = s.finest_channels if finest else ()
        channels = narrow or s.decoder_channels
        self.decoder = ResidualDecoder(volume + 2 + 2 * has_feature + mixture, channels)
        refined = number in s.refined_levels
        self.refinement = (
            Refinement(channels[-1] + 2, narrow or s.refinement_channels, s.refinement_dilations) if refined else None
        )
        if s.soft_argmax:
            self.temperature = nn.Parameter(torch.tensor(3.4))  # logarithm: e^3.4 = 30, a start; it is trained
        self.fixed_sharpness: float | None = None  # its exponential, once training has ended
        self.correlation_scale = 1.0  # what the correlation is multiplied by, see `for_inference`
        self.slices: SliceMLP | SliceModule | None = None
        self.predictor: nn.Conv2d | Predictor | None = None
        self.uses_feature = s.uncertainty in ("both", "common")
        if s.uncertainty == "none":
            return
        outputs = self.constraint.inputs + s.mixture.components
        width = channels[-1] if self.uses_feature else 0
        if s.uncertainty == "common":
            self.predictor = nn.Conv2d(width, outputs, 3, padding=1)
            return
        if s.slice_layers == "mlp":
            self.slices = SliceMLP(volume, s.slice_channels)
        else:
            self.slices = SliceModule(s.slice_channels, pool=is_global)
        self.predictor = Predictor(
            s.slice_channels[-1] + width + mixture + (0 if is_global else 2), s.predictor_channels, outputs
        )

    @property
    def sharpness(self) -> Tensor | float:
        """The factor of the correlation in its softmax."""
        return self.temperature.exp() if self.fixed_sharpness is None else self.fixed_sharpness

    def raw_mixture(self, slices: Tensor | None, feature: Tensor, *previous: Tensor) -> Tensor:
        """What the predictor says of the mixture: h and the logits (B, inputs + M, h, w)."""
        assert self.predictor is not None  # else nothing asks for it
        if self.slices is None:
            return self.predictor(feature)
        ones = self.slices.ones(feature) if isinstance(self.slices, SliceMLP) else []
        seen = [feature] if self.uses_feature else []
        return self.predictor(torch.cat([self.slices(slices), *seen, *previous, *ones], 1))
