"""What a network is made of. The same classes give PDC-Net+, PDC-Net, their baseline and the compact network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pdc_sfm.settings import require


@dataclass(frozen=True)
class MixtureSettings:
    """The predictive distribution: Laplace components with a common mean and separated variances (Eq. 3-4)."""

    components: Literal[1, 2, 3] = 2  # Laplace components of the mixture
    constrained: bool = True  # false: every component's variance is free, the paper's "unconstrained mixture"
    first: Literal["fixed", "bounded"] = "fixed"  # sigma_1^2 = 1, or 0 <= sigma_1^2 <= 1
    upper: Literal["image", "infinite"] = "image"  # bound of sigma_2^2: the area of the training images, or none
    low_area: int = 256**2  # "image" in the 256x256 branch
    high_area: int = 520**2  # "image" in the full-resolution branch
    learned_bounds: bool = False  # the bounds of sigma_2^2 are parameters, starting at 2 and the area

    def __post_init__(self) -> None:
        require(self.low_area > 2 and self.high_area > 2, "mixture areas must exceed 2, the lower bound of sigma_2^2")
        require(
            not self.learned_bounds or (self.constrained and self.components > 1 and self.upper == "image"),
            "mixture.learned_bounds needs a constrained mixture of 2 or 3 components with upper=image",
        )


@dataclass(frozen=True)
class NetworkSettings:
    """Architecture. The defaults are PDC-Net+ as published."""

    backbone: Literal["vgg16", "efficientnet_lite0"] = "vgg16"  # the feature extractor
    shared_backbone: bool = False  # one backbone for both branches (PDC-Net), or one each (PDC-Net+)
    pyramid_channels: tuple[int, ...] = ()  # channels of a top-down pyramid over the backbone at strides 16, 8, 4, 2
    normalize_local: bool = False  # L2-normalize the features of local levels too
    correlation: Literal["gocor", "plain"] = "gocor"  # GOCor modules, or plain feature correlation
    global_iterations: int = 3  # of global GOCor's optimizer
    local_iterations: int = 7  # of local GOCor's optimizer
    radius: int = 4  # of the local correlation's window, in cells of its level
    strides: tuple[int, ...] = (8, 4)  # of the full-resolution levels, coarse to fine
    decoder_channels: tuple[int, int, int, int, int] = (128, 128, 96, 64, 32)  # widths of the flow decoder's layers
    refinement_channels: tuple[int, ...] = (128, 128, 128, 96, 64, 32)  # widths of the refinement's layers
    refinement_dilations: tuple[int, ...] = (1, 2, 4, 8, 16, 1)  # their dilations
    # levels whose flow is refined: 3 is the 256-pixel branch's finer one, 2 to 0 the full resolution's, coarse to
    # fine
    refined_levels: tuple[int, ...] = (3, 1)
    finest_channels: tuple[
        int, ...
    ] = ()  # of decoder and refinement at the finest level, the costliest; none: as above
    finest_radius: int = 0  # of the finest level's window; 0: as above
    # what the mixture is predicted from: correlation slices, the flow decoder's features (common), both; none:
    # flow only
    uncertainty: Literal["both", "correlation", "common", "none"] = "both"
    slice_layers: Literal["convolution", "mlp"] = "convolution"  # how each correlation slice is encoded
    slice_channels: tuple[int, int, int, int] = (32, 32, 16, 6)  # widths of these layers
    predictor_channels: tuple[int, int] = (32, 16)  # widths of the uncertainty predictor
    mixture: MixtureSettings = field(default_factory=MixtureSettings)
    propagate: bool = True  # the mixture of the level before is an input of the decoder and of the predictor
    soft_argmax: bool = False  # add the expected displacement of the correlation to each level's flow
    detach_levels: bool = False  # no gradient from a level to the flow and mixture of the level before
    passes: tuple[int, ...] = ()  # how often each local level runs on its own result, coarse to fine; none: once each
    confidence_channels: tuple[
        int, ...
    ] = ()  # widths of the confidence head's layers; none: there is no confidence head

    def __post_init__(self) -> None:
        require(self.global_iterations >= 0, "global_iterations must be 0 or more")
        require(self.local_iterations >= 0, "local_iterations must be 0 or more")
        require(1 <= self.radius <= 4, "radius must be between 1 and 4")
        require(0 <= self.finest_radius <= self.radius, "finest_radius must be between 0 and radius")
        require(
            not self.finest_radius or self.correlation == "plain",
            "finest_radius needs correlation=plain: GOCor's weights are of one radius",
        )
        require(self.strides in ((8, 4), (8, 4, 2)), "strides must be 8,4 or 8,4,2")
        require(
            len(self.refinement_channels) == len(self.refinement_dilations),
            "refinement_channels and refinement_dilations must have the same length",
        )
        require(
            not self.refined_levels or self.refinement_channels[-1] == self.decoder_channels[-1],
            "the last of refinement_channels must equal the last of decoder_channels: the two features are added",
        )
        require(
            not self.finest_channels
            or (len(self.finest_channels) == len(self.decoder_channels) == len(self.refinement_channels)),
            "finest_channels must be as many as decoder_channels and refinement_channels",
        )
        require(
            not self.passes or (len(self.passes) == len(self.levels) - 1 and min(self.passes) >= 1),
            f"passes needs {len(self.levels) - 1} numbers of at least 1: one a local level, coarse to fine",
        )
        require(set(self.refined_levels) <= {0, 1, 2, 3}, "refined_levels are levels between 3 and 0")
        require(
            self.backbone != "efficientnet_lite0" or len(self.pyramid_channels) == 1 + len(self.strides),
            "efficientnet_lite0 needs pyramid_channels for strides 16, 8, 4 (and 2, if it is among the strides)",
        )
        require(
            not self.confidence_channels or (self.mixture.components == 2 and self.uncertainty != "none"),
            "confidence_channels need a mixture of two components",
        )
        require(self.backbone != "vgg16" or not self.pyramid_channels, "vgg16 takes no pyramid_channels")
        require(self.backbone != "vgg16" or self.strides == (8, 4), "vgg16 has levels at strides 8,4 only")

    @property
    def levels(self) -> tuple[int, ...]:
        """Level numbers as in the paper, coarse to fine: 4, 3 in the 256x256 branch; 2, 1 (and 0) at full resolution."""
        return (4, 3, *range(2, 2 - len(self.strides), -1))


PDCNET_PLUS = NetworkSettings()
PDCNET = NetworkSettings(shared_backbone=True)
COMPACT = NetworkSettings(
    backbone="efficientnet_lite0",
    shared_backbone=True,
    pyramid_channels=(128, 96, 64),
    normalize_local=True,
    correlation="plain",
    decoder_channels=(64, 64, 64, 48, 32),
    refinement_channels=(64, 64, 64, 48, 32),
    refinement_dilations=(1, 2, 4, 8, 1),
    slice_layers="mlp",
    slice_channels=(64, 32, 16, 8),
    finest_channels=(48, 48, 32, 32, 32),
    finest_radius=2,
    soft_argmax=True,
    detach_levels=True,
    passes=(3, 2, 1),
)
