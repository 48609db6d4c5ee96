"""All settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pdc_sfm.device import require_device
from pdc_sfm.network import NetworkSettings
from pdc_sfm.settings import require
from pdc_sfm.synthetic.pairs import SyntheticPairSettings
from pdc_sfm.training.descriptors import DescriptorSettings
from pdc_sfm.training.loss import LossSettings
from pdc_sfm.training.schedule import ScheduleSettings, SizeSettings
from pdc_sfm.training.supervision import SupervisionSettings
from pdc_sfm.training.validation import ValidationSettings


@dataclass(frozen=True)
class OptimizerSettings:
    """How gradients become steps. Weight decay is Adam's L2 term as in the paper, or decoupled with adamw."""

    name: Literal["adam", "adamw"] = "adam"  # adamw: decoupled weight decay
    rate: float = 1e-4  # learning rate
    weight_decay: float = 4e-4  # factor of the L2 term
    backbone_factor: float = 1.0  # of the rate, for the pretrained backbone
    unfreeze_at: int = 0  # iteration from which the backbone is trained; -1: never
    fixed_stride: Literal[0, 2, 4, 8] = 0  # layers of efficientnet_lite0 up to this stride never learn; 0: all learn
    freeze_statistics_at: int = -1  # iteration from which batch norm keeps its statistics; -1: never
    clip: float = 0.0  # largest norm of the gradient; 0: no limit
    average: float = 0.0  # decay of the running average of the weights, which is saved; 0: none

    def __post_init__(self) -> None:
        require(self.rate > 0, "optimizer.rate must be positive")
        require(self.weight_decay >= 0, "optimizer.weight_decay must be at least 0")
        require(self.backbone_factor >= 0, "optimizer.backbone_factor must be at least 0")
        require(self.unfreeze_at >= -1, "optimizer.unfreeze_at must be an iteration, or -1 for never")
        require(self.freeze_statistics_at >= -1, "optimizer.freeze_statistics_at must be an iteration, or -1 for never")
        require(self.clip >= 0, "optimizer.clip must be at least 0")
        require(0 <= self.average < 1, "optimizer.average must lie in [0, 1)")

    def learns_backbone(self, iteration: int) -> bool:
        """Whether the backbone learns at an iteration."""
        return 0 <= self.unfreeze_at <= iteration

    def freezes_statistics(self, iteration: int) -> bool:
        """Whether batch norm normalizes by its running statistics, as at inference, at an iteration."""
        return 0 <= self.freeze_statistics_at <= iteration


@dataclass(frozen=True)
class TrainSettings:
    """A training run. The defaults are the paper's first stage (Sec. 4.1, appendix C.5)."""

    network: NetworkSettings = field(default_factory=lambda: NetworkSettings(local_iterations=3))
    pairs: SyntheticPairSettings = field(default_factory=SyntheticPairSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    descriptors: DescriptorSettings = field(default_factory=DescriptorSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    sizes: SizeSettings = field(default_factory=SizeSettings)
    validation: ValidationSettings = field(default_factory=ValidationSettings)
    supervision: SupervisionSettings = field(default_factory=SupervisionSettings)
    real_share: float = 0.5  # of the pairs, if there are real ones with correspondences (second stage)
    rendered_share: float = 0.3  # of the pairs, if there are rendered scenes
    canvas_share: float = 0.0  # of the images: a turned part of them on an empty canvas, as a view search shows them
    start_from: str = ""  # initial weights; empty: none
    backbone_weights: str = "auto"  # otherwise ImageNet weights of the backbone: a file, auto (a package) or none
    initial_sigma: float = 0.0  # px: initial sigma of a new network's outlier component; 0: random
    # coarse: levels 4 and 3 and the backbone of their 256x256 branch alone, a fifth of the time a pair; needs
    # network.shared_backbone=false
    trained: Literal["all", "coarse"] = "all"
    seed: int = 1  # of pairs and of new weights
    device: str = "auto"  # cpu, cuda, cuda:1 ..., or auto: a GPU if there is one
    # of convolutions; auto: float16 on a GPU, its gradients scaled, and float32 on a CPU. Validation is in float32
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    threads: int = 2  # of torch
    workers: int = 1  # processes that make pairs; 0: the training process makes them itself
    checkpoint_minutes: float = 5.0  # between two saved states, from which a stopped run continues
    log_every: int = 20  # iterations per row of train.csv

    def __post_init__(self) -> None:
        require_device(self.device)
        untouched = self.pairs.size == SyntheticPairSettings().size
        require(untouched, "sizes.phases and sizes.aspects steer the size of training images: leave out pairs.size")
        for name in ("real_share", "rendered_share", "canvas_share"):
            require(0 <= getattr(self, name) <= 1, f"{name} must lie in [0, 1]")
        require(
            self.trained == "all" or not self.network.shared_backbone,
            "trained=coarse needs network.shared_backbone=false: the finer levels keep their backbone",
        )
        require(
            not self.optimizer.fixed_stride or self.network.backbone == "efficientnet_lite0",
            "optimizer.fixed_stride is for network.backbone=efficientnet_lite0",
        )
        require(self.initial_sigma == 0 or self.initial_sigma >= 2, "initial_sigma must be 0, or at least 2 px")
        require(self.threads >= 1, "threads must be at least 1")
        require(self.workers >= 0, "workers must be at least 0")
        require(self.checkpoint_minutes > 0, "checkpoint_minutes must be positive")
        require(self.log_every >= 1, "log_every must be at least 1")
